#include "chip.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

namespace evokernel::twin {

namespace {

class Reader {
public:
    explicit Reader(std::istream &input)
    {
        std::string key;
        std::string value;
        while (input >> key) {
            std::getline(input, value);
            values_[key] = std::strtod(value.c_str(), nullptr);
        }
    }

    template <typename T> void Need(const char *key, T &target)
    {
        const auto entry = values_.find(key);
        if (entry == values_.end()) {
            missing_ = missing_.empty() ? key : missing_;
            return;
        }
        target = static_cast<T>(entry->second);
    }
    const std::string &Missing() const { return missing_; }

private:
    std::map<std::string, double> values_;
    std::string missing_;
};

void ReadSizes(Reader &reader, Chip &chip)
{
    reader.Need("chip.aic", chip.aic);
    reader.Need("chip.aiv", chip.aiv);
    reader.Need("chip.mhz", chip.mhz);
    reader.Need("chip.ub_bytes", chip.ub_bytes);
    reader.Need("chip.hbm_bytes", chip.hbm_bytes);
    reader.Need("chip.l2_bytes", chip.l2_bytes);
    reader.Need("memory.ub_total_bytes", chip.ub_total_bytes);
    reader.Need("memory.l1_bytes", chip.l1_bytes);
    reader.Need("memory.l0a_bytes", chip.l0a_bytes);
    reader.Need("memory.l0b_bytes", chip.l0b_bytes);
    reader.Need("memory.l0c_bytes", chip.l0c_bytes);
    reader.Need("memory.bias_table_bytes", chip.bias_table_bytes);
    reader.Need("memory.fixpipe_buffer_bytes", chip.fixpipe_buffer_bytes);
    reader.Need("memory.stack_bytes", chip.stack_bytes);
    reader.Need("memory.max_buffers", chip.max_buffers);
    reader.Need("memory.max_queue_buffers", chip.max_queue_buffers);
}

void ReadScalar(Reader &reader, Chip &chip)
{
    reader.Need("launch.launch_us", chip.launch_us);
    reader.Need("launch.per_block_us", chip.per_block_us);
    reader.Need("launch.start_us", chip.start_us);
    reader.Need("scalar.issue_cycles", chip.issue);
    reader.Need("scalar.flag_cycles", chip.flag);
    reader.Need("scalar.queue_cycles", chip.queue);
    reader.Need("scalar.local_access_cycles", chip.local_access);
    reader.Need("scalar.gm_hit_cycles", chip.gm_hit);
    reader.Need("scalar.gm_miss_cycles", chip.gm_miss);
    reader.Need("scalar.pipe_init_cycles", chip.pipe_init);
    reader.Need("scalar.init_buffer_cycles", chip.init_buffer);
    reader.Need("sync.cross_core_cycles", chip.cross_core);
    reader.Need("sync.sync_all_cycles", chip.sync_all);
    reader.Need("scalar.pipe_queue_depth", chip.pipe_queue_depth);
}

void ReadVector(Reader &reader, Chip &chip)
{
    reader.Need("vector.startup_cycles", chip.startup);
    reader.Need("vector.startup_transcendental_cycles", chip.startup_transcendental);
    reader.Need("vector.startup_reduce_cycles", chip.startup_reduce);
    reader.Need("vector.startup_reduce_block_cycles", chip.startup_reduce_block);
    reader.Need("vector.tail_cycles", chip.vector_tail);
    reader.Need("vector.counter_tail_cycles", chip.counter_tail);
    reader.Need("vector.read_write_conflict_cycles", chip.read_write_conflict);
    reader.Need("vector.bank_groups", chip.bank_groups);
    reader.Need("vector.bank_bytes", chip.bank_bytes);
    reader.Need("vector.elements_per_cycle.simple_b16", chip.simple_b16);
    reader.Need("vector.elements_per_cycle.simple_b32", chip.simple_b32);
    reader.Need("vector.elements_per_cycle.simple_b64", chip.simple_b64);
    reader.Need("vector.elements_per_cycle.transcendental", chip.transcendental);
    reader.Need("vector.elements_per_cycle.mul_add_dst_b16", chip.mul_add_dst_b16);
    reader.Need("vector.elements_per_cycle.mul_add_dst_b32", chip.mul_add_dst_b32);
    reader.Need("vector.elements_per_cycle.reduce_repeat_b16", chip.reduce_repeat_b16);
    reader.Need("vector.elements_per_cycle.reduce_repeat_b32", chip.reduce_repeat_b32);
    reader.Need("vector.elements_per_cycle.reduce_block_b16", chip.reduce_block_b16);
    reader.Need("vector.elements_per_cycle.reduce_block_b32", chip.reduce_block_b32);
    reader.Need("vector.elements_per_cycle.gather", chip.gather);
    reader.Need("vector.elements_per_cycle.gather_block_b16", chip.gather_block_b16);
    reader.Need("vector.elements_per_cycle.gather_block_b32", chip.gather_block_b32);
    reader.Need("vector.elements_per_cycle.gather_mask_b16", chip.gather_mask_b16);
    reader.Need("vector.elements_per_cycle.gather_mask_b32", chip.gather_mask_b32);
    reader.Need("vector.elements_per_cycle.sort", chip.sort);
}

void ReadMoves(Reader &reader, Chip &chip)
{
    reader.Need("mte.load_bytes_per_cycle", chip.load_rate);
    reader.Need("mte.load_latency_cycles", chip.load_latency);
    reader.Need("mte.load_hit_bytes_per_cycle", chip.load_hit_rate);
    reader.Need("mte.load_hit_latency_cycles", chip.load_hit_latency);
    reader.Need("mte.store_bytes_per_cycle", chip.store_rate);
    reader.Need("mte.store_latency_cycles", chip.store_latency);
    reader.Need("mte.min_copy_cycles", chip.min_copy);
    reader.Need("mte.min_burst_cycles", chip.min_burst);
    reader.Need("mte.cube_load_hit_bytes_per_cycle", chip.cube_load_hit_rate);
    reader.Need("mte.aligned_bytes", chip.aligned_bytes);
    reader.Need("gm.hbm_achieved_gbps", chip.hbm_gbps);
    reader.Need("gm.l2_gbps", chip.l2_gbps);
    reader.Need("gm.requests_per_cycle", chip.requests_per_cycle);
    reader.Need("gm.write_back_cost", chip.write_back_cost);
    reader.Need("gm.same_address_cost", chip.same_address_cost);
}

void ReadCube(Reader &reader, Chip &chip)
{
    reader.Need("cube.l1_l0a_bytes_per_cycle", chip.l1_l0a_rate);
    reader.Need("cube.l1_l0b_bytes_per_cycle", chip.l1_l0b_rate);
    reader.Need("cube.l1_table_bytes_per_cycle", chip.l1_table_rate);
    reader.Need("cube.load_overhead_cycles", chip.load_overhead);
    reader.Need("cube.mmad_overhead_cycles", chip.mmad_overhead);
    reader.Need("cube.mmad_latency_cycles", chip.mmad_latency);
    reader.Need("cube.mmad_float_cycles", chip.mmad_float_cycles);
    reader.Need("cube.fixpipe_b16_elements_per_cycle", chip.fixpipe_b16);
    reader.Need("cube.fixpipe_b32_elements_per_cycle", chip.fixpipe_b32);
    reader.Need("cube.fixpipe_overhead_cycles", chip.fixpipe_overhead);
    reader.Need("cube.fixpipe_gm_bytes_per_cycle", chip.fixpipe_gm_rate);
}

}  // namespace

bool LoadChip(const std::string &path, Chip *chip, std::string *error)
{
    std::ifstream file(path);
    if (!file) {
        *error = "The chip file " + path + " cannot be read; give the path of an existing one.";
        return false;
    }
    Reader reader(file);
    ReadSizes(reader, *chip);
    ReadScalar(reader, *chip);
    ReadVector(reader, *chip);
    ReadMoves(reader, *chip);
    ReadCube(reader, *chip);
    if (!reader.Missing().empty()) {
        *error = "The chip file " + path + " lacks " + reader.Missing() + "; add it.";
        return false;
    }
    return true;
}

Chip &CurrentChip()
{
    static Chip chip{};
    return chip;
}

}  // namespace evokernel::twin
