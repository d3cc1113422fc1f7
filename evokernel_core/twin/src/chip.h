// Constants of a chip, from the flat `section.key value` text that the host makes of its TOML file.
#pragma once
#include <cstdint>
#include <string>

namespace evokernel::twin {

struct Chip {
    int aic, aiv;
    double mhz;
    uint64_t ub_bytes, ub_total_bytes, hbm_bytes, l2_bytes;
    uint64_t l1_bytes, l0a_bytes, l0b_bytes, l0c_bytes, bias_table_bytes, fixpipe_buffer_bytes;
    int max_buffers, max_queue_buffers;
    uint64_t stack_bytes;

    double launch_us, per_block_us, start_us;

    double issue, flag, queue, local_access, gm_hit, gm_miss, pipe_init, init_buffer;
    int pipe_queue_depth;
    double cross_core, sync_all;

    double startup, startup_transcendental, startup_reduce, startup_reduce_block, vector_tail, counter_tail;
    double read_write_conflict;
    int bank_groups;
    uint64_t bank_bytes;
    double simple_b16, simple_b32, simple_b64, transcendental, mul_add_dst_b16, mul_add_dst_b32;
    double reduce_repeat_b16, reduce_repeat_b32, reduce_block_b16, reduce_block_b32;
    double gather, gather_block_b16, gather_block_b32, gather_mask_b16, gather_mask_b32, sort;

    double load_rate, load_latency, load_hit_rate, load_hit_latency, store_rate, store_latency;
    double cube_load_hit_rate, min_copy, min_burst;
    uint64_t aligned_bytes;
    double hbm_gbps, l2_gbps, requests_per_cycle, write_back_cost, same_address_cost;

    // Matrix side.
    double l1_l0a_rate, l1_l0b_rate, l1_table_rate, load_overhead;
    double mmad_overhead, mmad_latency, mmad_float_cycles;
    double fixpipe_b16, fixpipe_b32, fixpipe_overhead, fixpipe_gm_rate;
};

// Reads the file. On failure returns false and says in `error` which constant is missing.
bool LoadChip(const std::string &path, Chip *chip, std::string *error);

// The chip in use: all zero until LoadChip fills it.
Chip &CurrentChip();

}  // namespace evokernel::twin
