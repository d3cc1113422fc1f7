"""For each check of an instruction: the smallest kernel that fails it and its neighbour that does not.

The checks of queues, copies and buffers are paired in test_cpp_hazards.py; here every hazard also
has to name the file and the line of the call.
"""

# ruff: noqa: E501 - a line of a kernel stays one line

from __future__ import annotations

import numpy as np
import pytest

# What every case finds: filled tensors and raw ones. Cases are its member functions.
SETUP = """struct Scene {
    TPipe pipe;
    GM_ADDR *t;
    GlobalTensor<float> x, z;
    TBuf<TPosition::VECCALC> bufA, bufB, bufC, bufS;
    LocalTensor<float> a, b, c, raw;
    LocalTensor<half> ha, hb, hc, hs;
    LocalTensor<int32_t> ia, ic;
    LocalTensor<uint32_t> uc, us;
    LocalTensor<int16_t> sa;
    LocalTensor<uint16_t> wc, ws;
    LocalTensor<uint8_t> tc, ts;
    LocalTensor<uint64_t> qs;
    uint64_t mask[2] = {~0ull, ~0ull}, kept = 0;
    void Begin(GM_ADDR *tensors)
    {
        t = tensors;
        x.SetGlobalBuffer((__gm__ float *)t[0], 1024);
        z.SetGlobalBuffer((__gm__ float *)t[1], 1024);
        pipe.InitBuffer(bufA, 4096); pipe.InitBuffer(bufB, 4096); pipe.InitBuffer(bufC, 16384); pipe.InitBuffer(bufS, 256);
        a = bufA.Get<float>(); b = bufB.Get<float>(); c = bufC.Get<float>(); raw = bufS.Get<float>();
        ha = bufA.Get<half>(); hb = bufB.Get<half>(); hc = bufC.Get<half>(); hs = bufS.Get<half>();
        ia = bufA.Get<int32_t>(); ic = bufC.Get<int32_t>(); uc = bufC.Get<uint32_t>(); us = bufS.Get<uint32_t>();
        sa = bufA.Get<int16_t>(); wc = bufC.Get<uint16_t>(); ws = bufS.Get<uint16_t>();
        tc = bufC.Get<uint8_t>(); ts = bufS.Get<uint8_t>(); qs = bufS.Get<uint64_t>();
        DataCopy(a, x, 1024);
        Duplicate(ic, 0, 4096);
        PipeBarrier<PIPE_ALL>();
    }
    void End()
    {
        PipeBarrier<PIPE_ALL>();
        Duplicate(b, 0.0f, 1024);
        PipeBarrier<PIPE_ALL>();
        DataCopy(z, b, 1024);
    }
"""
CLEAN = " DataCacheCleanAndInvalid<float, CacheLine::ENTIRE_DATA_CACHE>(z);"
MERGE = "MrgSortSrcList<float> l(a[0], a[64], a[128], a[192]); uint16_t n[4] = {32, 32, 32, 32}; "
RUNS = "TransDataTo5HDParams p(false, false, 1, 0, 0); LocalTensor<half> to[16], from[16]; for (int i = 0; i < 16; ++i) { to[i] = hc[i * 16]; from[i] = ha[i * 16]; } "
TOPK = "TopkTiling plan; plan.tmpLocalSize = 256; TopKInfo info; info.inner = 64; info.n = 64; LocalTensor<bool> f = bufS.Get<bool>(); "

# code: (failing line, its neighbour)
PAIRS = {
    "ub-capacity": [
        (
            "LocalTensor<float> t0(TPosition::VECCALC, 196608 - 32, 16);",
            "LocalTensor<float> t0(TPosition::VECCALC, 196608 - 64, 16);",
        ),
        (
            "TBuf<TPosition::VECCALC> more; pipe.InitBuffer(more, 196608 - 24800);",
            "TBuf<TPosition::VECCALC> more; pipe.InitBuffer(more, 196608 - 24832);",
        ),
    ],
    "alignment": [
        ("Add(b[1], a, a, 8);", "Add(b[8], a, a, 8);"),
        ("Cast(hb[8], a, RoundMode::CAST_RINT, 8);", "Cast(hb[16], a, RoundMode::CAST_RINT, 8);"),
        (
            "WholeReduceSum(hb[1], ha, 128, 1, 1, 1, 8); BlockReduceSum(hb[4], ha, 1, 128, 1, 1, 8);",
            "WholeReduceSum(hb[1], ha, 128, 1, 1, 1, 8); BlockReduceSum(hb[8], ha, 1, 128, 1, 1, 8);",
        ),
        ("WholeReduceMax(b[1], a, 64, 1, 1, 1, 8);", "WholeReduceMax(b[2], a, 64, 1, 1, 1, 8);"),
        ("DataCopy(b[4], x, 8);", "DataCopy(b[8], x, 8);"),
        (
            "DataCopyPad(b[4], x, {1, 4, 0, 0, 0}, {false, 0, 0, 0.0f});",
            "DataCopyPad(b[8], x, {1, 4, 0, 0, 0}, {false, 0, 0, 0.0f});",
        ),
        (
            "DataCopyPad(b, x, {1, 6, 0, 0, 0}, {false, 0, 0, 0.0f});",
            "DataCopyPad(b, x, {1, 8, 0, 0, 0}, {false, 0, 0, 0.0f});",
        ),
        ("Gather(b, a, uc[4], 0u, 8u);", "Gather(b, a, uc[8], 0u, 8u);"),
        ("Compare(tc, a, a, CMPMODE::EQ, 60);", "Compare(tc, a, a, CMPMODE::EQ, 64);"),
        (
            "Sort32(c[4], a, us, 0); Sort32(c[4], a, uc[2048], 1);",
            "Sort32(c[8], a, us, 0); Sort32(c[8], a, uc[2048], 1);",
        ),
        (
            MERGE + "l.src2 = a[63]; MrgSort(c, l, MrgSort4Info(n, false, 3, 1));",
            MERGE + "l.src2 = a[62]; MrgSort(c, l, MrgSort4Info(n, false, 3, 1));",
        ),
        (
            RUNS + "to[3] = hc[50]; TransDataTo5HD<half>(to, from, p);",
            RUNS + "to[3] = hc[64 * 16]; TransDataTo5HD<half>(to, from, p);",
        ),
        ("Brcb(c, a[3], 1, {1, 8});", "Brcb(c, a[8], 1, {1, 8});"),
        ("Duplicate(b[3], 0.0f, 8);", "Duplicate(b[16], 0.0f, 8);"),
    ],
    "out-of-bounds": [
        ("Add(b, a, a[1016], 16);", "Add(b, a, a[1016], 8);"),
        ("Adds(b[960], a, 1.0f, 64, 2, {1, 1, 8, 8});", "Adds(b[896], a, 1.0f, 64, 2, {1, 1, 8, 8});"),
        (
            "Adds(b, a[1000], 1.0f, 64, 1, {1, 0, 8, 8}); Adds(b, a[1016], 1.0f, 9, 1, {1, 1, 8, 8});",
            "Adds(b, a[1000], 1.0f, 64, 1, {1, 0, 8, 8}); Adds(b, a[1016], 1.0f, 9, 1, {1, 0, 8, 8});",
        ),
        ("DataCopy(b, x[1016], 24);", "DataCopy(b, x[1016], 8);"),
        ("DataCopy(b[1016], x, 16);", "DataCopy(b[1016], x, 8);"),
        ("DataCopy(b, x, DataCopyParams(3, 1, 64, 0));", "DataCopy(b, x, DataCopyParams(2, 1, 63, 0));"),
        (
            "DataCopyPad(b, x, {9, 512, 0, 0, 0}, {false, 0, 0, 0.0f});",
            "DataCopyPad(b, x, {8, 512, 0, 0, 0}, {false, 0, 0, 0.0f});",
        ),
        (
            "Duplicate(raw, 0.0f, 64); PipeBarrier<PIPE_ALL>(); DataCopyPad(z[1020], raw, {1, 20, 0, 0, 0});",
            "Duplicate(raw, 0.0f, 64); PipeBarrier<PIPE_ALL>(); DataCopyPad(z[1020], raw, {1, 16, 0, 0, 0});",
        ),
        ("(void)x.GetValue(1032);", "(void)x.GetValue(1023);"),
        ("z.SetValue(1024, 1.0f);", "z.SetValue(1023, 1.0f);" + CLEAN),
        ("(void)a.GetValue(1024);", "(void)a.GetValue(1023);"),
        ("a.SetValue(1024, 1.0f);", "a.SetValue(1023, 1.0f);"),
        (
            "Duplicate(uc, 4096u, 8); Gather(b, a, uc, 0u, 8u);",
            "Duplicate(uc, 4092u, 8); Gather(b, a, uc, 0u, 8u);",
        ),
        ("Sort32(c[3900], a, uc, 4);", "Sort32(c[3840], a, uc, 4);"),
        (
            MERGE + "MrgSort(c[3848], l, MrgSort4Info(n, false, 15, 1));",
            MERGE + "MrgSort(c[3840], l, MrgSort4Info(n, false, 15, 1));",
        ),
        ("Transpose(hs, ha);", "Transpose(hb, ha);"),
        (
            RUNS + "from[15] = ha[2048]; TransDataTo5HD<half>(to, from, p);",
            RUNS + "from[15] = ha[2032]; TransDataTo5HD<half>(to, from, p);",
        ),
        (
            RUNS
            + "uint64_t q[16]; for (int i = 0; i < 16; ++i) q[i] = (uint64_t)to[i].GetPhyAddr(); uint64_t w[16] = {}; TransDataTo5HD<half>(q, w, p);",
            RUNS
            + "uint64_t q[16], w[16]; for (int i = 0; i < 16; ++i) { q[i] = (uint64_t)to[i].GetPhyAddr(); w[i] = (uint64_t)from[i].GetPhyAddr(); } TransDataTo5HD<half>(q, w, p);",
        ),
        (
            "GatherMask(b, a, wc.ReinterpretCast<uint32_t>()[4088], false, 0, {1, 3, 8, 8}, kept);",
            "GatherMask(b, a, wc.ReinterpretCast<uint32_t>()[3936], false, 0, {1, 3, 8, 8}, kept);",
        ),
        ("Brcb(b, a, 17, {1, 8});", "Brcb(b, a, 16, {1, 8});"),
        ("Copy(b, a, 64, 17, {1, 1, 8, 8});", "Copy(b, a, 64, 16, {1, 1, 8, 8});"),
        (
            "(void)ReadGmByPassDCache((__gm__ int32_t *)t[0] - 1);",
            "(void)ReadGmByPassDCache((__gm__ int32_t *)t[0]);",
        ),
    ],
    "uninitialised-read": [
        (
            "Add(b, a, raw, 8); DataCopy(z, b, 8);",
            "Duplicate(raw, 0.0f, 8); Add(b, a, raw, 8); PipeBarrier<PIPE_ALL>(); DataCopy(z, b, 8);",
        ),
        ("(void)raw.GetValue(0);", "raw.SetValue(0, 1.0f); (void)raw.GetValue(0);"),
        ("DataCopy(z, raw, 8);", "Duplicate(raw, 0.0f, 8); PipeBarrier<PIPE_ALL>(); DataCopy(z, raw, 8);"),
        (
            "Duplicate(raw, 0.0f, 7); PipeBarrier<PIPE_ALL>(); DataCopyPad(z, raw, {1, 32, 0, 0, 0});",
            "Duplicate(raw, 0.0f, 7); PipeBarrier<PIPE_ALL>(); DataCopyPad(z, raw, {1, 28, 0, 0, 0});",
        ),
        ("Gather(b, a, us, 0u, 8u);", "Duplicate(us, 0u, 8); Gather(b, a, us, 0u, 8u);"),
        (
            "Gatherb(b.ReinterpretCast<uint32_t>(), a.ReinterpretCast<uint32_t>(), us, 1, {1, 8});",
            "Duplicate(us, 0u, 8); Gatherb(b.ReinterpretCast<uint32_t>(), a.ReinterpretCast<uint32_t>(), us, 1, {1, 8});",
        ),
        (
            "GatherMask(b, a, us, false, 0, {1, 1, 8, 8}, kept);",
            "Duplicate(us, 0u, 8); GatherMask(b, a, us, false, 0, {1, 1, 8, 8}, kept);",
        ),
        ("Sort32(c, raw, uc[2048], 1);", "Duplicate(raw, 0.0f, 32); Sort32(c, raw, uc[2048], 1);"),
        (
            MERGE + "l.src1 = raw; MrgSort(c, l, MrgSort4Info(n, false, 3, 1));",
            MERGE + "Duplicate(raw, 0.0f, 64); l.src1 = raw; MrgSort(c, l, MrgSort4Info(n, false, 3, 1));",
        ),
        (
            "TransDataTo5HDParams p; TransDataTo5HD<half>(qs, qs, p);",
            "TransDataTo5HDParams p; for (int i = 0; i < 16; ++i) qs.SetValue(i, (uint64_t)hc[i * 16].GetPhyAddr()); TransDataTo5HD<half>(qs, qs, p);",
        ),
        ("(void)z.GetValue(0);", "z.SetValue(0, 1.0f); (void)z.GetValue(0);" + CLEAN),
        (
            "SetAtomicAdd<float>(); DataCopy(z, a, 8); SetAtomicNone();",
            "DataCopy(z, a, 8); PipeBarrier<PIPE_ALL>(); SetAtomicAdd<float>(); DataCopy(z, a, 8); SetAtomicNone();",
        ),
        (
            "WholeReduceSum(b, raw, 64, 1, 1, 1, 8); (void)b.GetValue(0);",
            "Duplicate(raw, 0.0f, 64); WholeReduceSum(b, raw, 64, 1, 1, 1, 8); (void)b.GetValue(0);",
        ),
        (
            "(void)ReadGmByPassDCache((__gm__ int32_t *)t[1]);",
            "WriteGmByPassDCache<int32_t>((__gm__ int32_t *)t[1], 3); (void)ReadGmByPassDCache((__gm__ int32_t *)t[1]);",
        ),
    ],
    "repeat-limit": [
        ("Add(b, a, a, mask, 256, {1, 1, 1, 0, 0, 0});", "Adds(b, a, 0.0f, 64, 16, {1, 1, 8, 8});"),
        ("Muls(b, a, 1.0f, -1);", "Muls(b, a, 1.0f, 0);"),
        (
            "Cast(hb, a, RoundMode::CAST_RINT, 64, 300, {1, 1, 0, 0});",
            "Cast(hb, a, RoundMode::CAST_RINT, 64, 16, {1, 1, 4, 8});",
        ),
        ("WholeReduceSum(b, a, 64, 256, 1, 1, 0);", "WholeReduceSum(b, a, 64, 255, 1, 1, 0);"),
        ("Brcb(b, a, 256, {1, 0});", "Brcb(b, a, 16, {1, 0});"),
        (
            "Gatherb(c.ReinterpretCast<uint32_t>(), a.ReinterpretCast<uint32_t>(), uc, 256, {1, 0});",
            "Gatherb(b.ReinterpretCast<uint32_t>(), a.ReinterpretCast<uint32_t>(), uc, 16, {1, 8});",
        ),
        ("Sort32(c, a, uc, 256);", "Sort32(c[2048], a, uc, 16);"),
    ],
    "param-limit": [
        ("ShiftLeft(wc, wc, (uint16_t)17, 16);", "ShiftLeft(wc, wc, (uint16_t)16, 16);"),
        ("ShiftRight(ia, ia, -1, 8);", "ShiftRight(ia, ia, 32, 8);"),
        (
            MERGE + "MrgSort(c, l, MrgSort4Info(n, false, 1, 1));",
            MERGE + "MrgSort(c, l, MrgSort4Info(n, false, 3, 1));",
        ),
        (
            MERGE + "n[0] = 4096; MrgSort(c, l, MrgSort4Info(n, false, 3, 1));",
            MERGE + "n[0] = 0; MrgSort(c, l, MrgSort4Info(n, false, 3, 1));",
        ),
        (
            MERGE + "MrgSort(c, l, MrgSort4Info(n, true, 15, 2));",
            MERGE + "MrgSort(c, l, MrgSort4Info(n, false, 15, 2));",
        ),
        (
            TOPK + "TopK<float>(b, ic, a, ic, f, 65, plan, info);",
            TOPK + "TopK<float>(b, ic, a, ic, f, 64, plan, info);",
        ),
        (
            "SetDeqScale(1.0f, 0, false); CastDequant<int8_t, int16_t, false, true>(bufC.Get<int8_t>(), sa, 16u);",
            "SetDeqScale(1.0f, 0, true); CastDequant<int8_t, int16_t, false, true>(bufC.Get<int8_t>(), sa, 16u);",
        ),
        (
            "CastDequant<int8_t, int16_t, true, true>(bufC.Get<int8_t>(), sa, 16u);",
            "VdeqInfo v; SetDeqScale(qs, v); CastDequant<int8_t, int16_t, true, true>(bufC.Get<int8_t>(), sa, 16u);",
        ),
        ("SetCtrlSpr<47, 47>(1);", "SetCtrlSpr<48, 48>(1);"),
        (
            "SliceInfo p[] = {{0, 16, 0, 1, 64}}, q[] = {{0, 15, 0, 1, 64}}; DataCopy(b, x, q, p, 1);",
            "SliceInfo p[] = {{0, 15, 0, 1, 64}}, q[] = {{0, 15, 0, 1, 64}}; DataCopy(b, x, q, p, 1);",
        ),
        (
            "Nz2NdParamsFull p(1, 4, 24, 1, 4, 32, 32); DataCopy(z, a, p);",
            "Nz2NdParamsFull p(1, 4, 32, 1, 4, 32, 32); DataCopy(z, a, p);",
        ),
    ],
    "stride-limit": [
        ("Adds(b, a, 1.0f, 64, 1, {0, 1, 8, 8});", "Adds(b, a, 1.0f, 8, 1, {0, 1, 8, 8});"),
        ("DataCopy(b, x, DataCopyParams(4096, 0, 0, 0));", "DataCopy(b, x, DataCopyParams(4095, 0, 0, 0));"),
        (
            "DataCopyPad(b, x, {1, 4, 0, 0, 0}, {true, 9, 0, 0.0f});",
            "DataCopyPad(b, x, {1, 4, 0, 0, 0}, {true, 8, 0, 0.0f});",
        ),
        (
            "DataCopyPad(b, x, {0, 2097152, 0, 0, 0}, {false, 0, 0, 0.0f});",
            "DataCopyPad(b, x, {0, 2097148, 0, 0, 0}, {false, 0, 0, 0.0f});",
        ),
    ],
    "mask-limit": [
        (
            "GatherMask(b, a, (uint8_t)8, false, 0, {1, 1, 8, 8}, kept);",
            "GatherMask(b, a, (uint8_t)7, false, 0, {1, 1, 8, 8}, kept);",
        ),
        (
            "GatherMask(b, a, (uint8_t)0, false, 0, {1, 1, 8, 8}, kept);",
            "GatherMask(b, a, (uint8_t)1, false, 0, {1, 1, 8, 8}, kept);",
        ),
    ],
    "dtype-unsupported": [
        (
            "Gatherb(b, a, uc, 16, {1, 8});",
            "Gatherb(b.ReinterpretCast<uint32_t>(), a.ReinterpretCast<uint32_t>(), uc, 16, {1, 8});",
        ),
        ("Compare(wc, a, a, CMPMODE::EQ, 64);", "Compare(tc, a, a, CMPMODE::EQ, 64);"),
        (
            "Sub(bufB.Get<bfloat16_t>(), bufA.Get<bfloat16_t>(), bufA.Get<bfloat16_t>(), 16);",
            "Sub(hb, ha, ha, 16);",
        ),
        ("And(ic, ia, ia, 16);", "And(wc, wc, wc, 16);"),
        ("Not(ic, ia, 16);", "Not(wc, wc, 16);"),
        ("Relu(bufB.Get<int16_t>(), sa, 16);", "Relu(ic, ia, 16);"),
        ("Exp(ic, ia, 16);", "Exp(b, a, 16);"),
        ("Compare(tc, ia, ia, CMPMODE::LT, 64);", "Compare(tc, ia, ia, CMPMODE::EQ, 64);"),
        ("Duplicate(tc, (uint8_t)1, 32);", "Duplicate(wc, (uint16_t)1, 32);"),
        ("WholeReduceSum(ic, ia, 64, 1, 1, 1, 8);", "WholeReduceSum(b, a, 64, 1, 1, 1, 8);"),
        ("Cast(ic, sa, RoundMode::CAST_NONE, 16);", "Cast(c, sa, RoundMode::CAST_NONE, 16);"),
        (
            "Cast(hb, a, RoundMode::CAST_NONE, 16); Cast(ia, a, RoundMode::CAST_NONE, 16);",
            "Cast(hb, a, RoundMode::CAST_NONE, 16); Cast(ia, a, RoundMode::CAST_RINT, 16);",
        ),
        ("Sort32(ic, ia, uc[2048], 1);", "Sort32(c, a, uc[2048], 1);"),
        ("Transpose(bufC.Get<bfloat16_t>(), bufA.Get<bfloat16_t>());", "Transpose(hc, ha);"),
        (
            "GatherMask(qs, qs, (uint8_t)7, true, 8, {1, 1, 8, 8}, kept);",
            "GatherMask(b, a, (uint8_t)7, true, 8, {1, 1, 8, 8}, kept);",
        ),
        (
            "Copy(tc, ts, 32, 0, {1, 1, 8, 8}); Copy(tc, tc[1024], 32, 1, {1, 1, 8, 8});",
            "Copy(wc, wc[1024], 32, 1, {1, 1, 8, 8});",
        ),
        ("SetAtomicAdd<uint32_t>(); SetAtomicNone();", "SetAtomicAdd<int32_t>(); SetAtomicNone();"),
        ("CastDequant<half, int16_t>(hc, sa, 16u);", "CastDequant<half, int32_t>(hc, ia, 16u);"),
        ("CreateVecIndex(uc, 0u, 16u);", "CreateVecIndex(ic, 0, 16u);"),
    ],
    "overlap": [
        (
            "Adds(a[8], a, 1.0f, 64, 4, {1, 1, 8, 8});",
            "Adds(a, a[8], 1.0f, 64, 1, {8, 8, 8, 8}); Adds(a, a, 1.0f, 64, 4, {1, 1, 8, 8});",
        ),
        (
            "Mul(a[64], a, b, 64, 4, {1, 1, 1, 8, 8, 8});",
            "Duplicate(b, 1.0f, 64); Mul(b, a, b, 64, 4, {1, 1, 1, 0, 8, 0}); Mul(a, a[64], b, 64, 4, {1, 1, 1, 8, 8, 8});",
        ),
        (
            MERGE + "MrgSort(a[192], l, MrgSort4Info(n, false, 15, 1));",
            MERGE + "MrgSort(a[256], l, MrgSort4Info(n, false, 15, 1));",
        ),
        (
            "Transpose(ha[256], ha, tc, TransposeParamsExt(1, 6, 2, 32, TransposeType::TRANSPOSE_NCHW2NHWC));",
            "Transpose(hb, ha, tc, TransposeParamsExt(1, 6, 2, 32, TransposeType::TRANSPOSE_NCHW2NHWC));",
        ),
        (
            "PadTiling p{{4, 7, 7, 0}}; PadParams q{0, 1, 0}; Pad(a[16], a, q, p);",
            "PadTiling p{{4, 7, 7, 0}}; PadParams q{0, 1, 0}; Pad(a[32], a, q, p);",
        ),
    ],
    "temp-buffer": [
        ("Sort<float, true>(c, a, uc, raw, 4);", "Sort<float, false>(c[2048], a, uc, raw, 4);"),
        (
            TOPK + "plan.tmpLocalSize = 257; TopK<float>(b, ic, a, ic, f, ts, 5, plan, info);",
            TOPK + "TopK<float>(b, ic, a, ic, f, ts, 5, plan, info);",
        ),
        (
            "PadTiling p{{4, 7, 7, 288}}; PadParams q{0, 1, 0}; Pad(b, a, q, ts, p);",
            "PadTiling p{{4, 7, 7, 256}}; PadParams q{0, 1, 0}; Pad(b, a, q, ts, p);",
        ),
    ],
    "gm-misaligned-access": [
        (
            "x.SetGlobalBuffer((__gm__ float *)(t[0] + 2)); DataCopy(b, x, 8);",
            "x.SetGlobalBuffer((__gm__ float *)(t[0] + 4)); DataCopy(b, x, 8);",
        ),
        (
            "z.SetGlobalBuffer((__gm__ float *)(t[1] + 1)); DataCopy(z, a, 8); z.SetGlobalBuffer((__gm__ float *)t[1]);",
            "z.SetGlobalBuffer((__gm__ float *)(t[1] + 4)); DataCopy(z, a, 8); z.SetGlobalBuffer((__gm__ float *)t[1]);",
        ),
    ],
    "input-modified": [
        ("DataCopy(x, a, 8);", "DataCopy(z, a, 8);"),
        ("x.SetValue(0, 1.0f);", "z.SetValue(0, 1.0f);" + CLEAN),
        (
            "WriteGmByPassDCache<int32_t>((__gm__ int32_t *)t[0], 3);",
            "WriteGmByPassDCache<int32_t>((__gm__ int32_t *)t[1], 3);",
        ),
    ],
    "queue-misuse": [
        (
            "TQue<TPosition::VECIN, 1> q, r; pipe.InitBuffer(q, 1, 32); pipe.InitBuffer(r, 1, 32); auto copy = r; auto e = copy.AllocTensor<float>(); q.FreeTensor(e); r.FreeTensor(e);",
            "TQue<TPosition::VECIN, 1> q; pipe.InitBuffer(q, 1, 32); auto copy = q; auto e = copy.AllocTensor<float>(); copy.FreeTensor(e); e = q.AllocTensor<float>(); q.FreeTensor(e);",
        ),
        (
            "TQue<TPosition::VECIN, 1> q; pipe.InitBuffer(q, 1, 32); auto e = q.AllocTensor<float>(); q.EnQue(e); e = q.DeQue<float>(); e = q.DeQue<float>(); q.FreeTensor(e);",
            "TQue<TPosition::VECIN, 1> q; pipe.InitBuffer(q, 1, 32); auto e = q.AllocTensor<float>(); q.EnQue(e); e = q.DeQue<float>(); q.FreeTensor(e);",
        ),
    ],
    "stale-read": [
        (
            "TQue<TPosition::VECIN, 1> q; pipe.InitBuffer(q, 1, 32); auto e = q.AllocTensor<float>(); q.FreeTensor(e); auto f = q.AllocTensor<float>(); Duplicate(e, 0.0f, 8); q.FreeTensor(f);",
            "TQue<TPosition::VECIN, 1> q; pipe.InitBuffer(q, 1, 32); auto e = q.AllocTensor<float>(); q.FreeTensor(e); auto f = q.AllocTensor<float>(); Duplicate(f, 0.0f, 8); q.FreeTensor(f);",
        ),
    ],
    "too-many-buffers": [
        (
            "TQue<TPosition::VECIN, 1> q; pipe.InitBuffer(q, 9, 32);",
            "TQue<TPosition::VECIN, 1> q; pipe.InitBuffer(q, 8, 32);",
        ),
    ],
}
WARNINGS = {
    "mask-limit": [
        ("Adds(b, a, 1.0f, 65, 1, {1, 1, 8, 8});", "Adds(b, a, 1.0f, 64, 1, {1, 1, 8, 8});"),
        ("Adds(hb, ha, (half)1, 129, 1, {1, 1, 8, 8});", "Adds(hb, ha, (half)1, 128, 1, {1, 1, 8, 8});"),
    ],
    "datacopy-truncation": [
        ("DataCopy(b, x, 9);", "DataCopy(b, x, 8);"),
        ("DataCopy(b, a, 9);", "DataCopy(b, a, 8);"),
        ("DataCopy(z, a, 9);", "DataCopy(z, a, 8);"),
    ],
    "stale-read": [
        (
            "TQue<TPosition::VECIN, 1> q; pipe.InitBuffer(q, 1, 32); auto e = q.AllocTensor<float>(); q.FreeTensor(e); Duplicate(e, 0.0f, 8);",
            "TQue<TPosition::VECIN, 1> q; pipe.InitBuffer(q, 1, 32); auto e = q.AllocTensor<float>(); Duplicate(e, 0.0f, 8); q.FreeTensor(e);",
        ),
    ],
    "overflow-inf": [
        ("Duplicate(b, 3e38f, 8); Add(c, b, b, 8);", "Duplicate(b, 1e38f, 8); Add(c, b, b, 8);"),
        ("Duplicate(b, 89.0f, 8); Exp(c, b, 8);", "Duplicate(b, 88.0f, 8); Exp(c, b, 8);"),
        (
            "Duplicate(b, 66000.0f, 8); Cast(hc, b, RoundMode::CAST_RINT, 8);",
            "Duplicate(b, 65000.0f, 8); Cast(hc, b, RoundMode::CAST_RINT, 8);",
        ),
        (
            "Duplicate(hb, (half)60000, 16); Muls(hc, hb, (half)2, 16);",
            "Duplicate(hb, (half)60000, 16); SetSaturationFlag<SaturationMode::FLOAT>(true); Muls(hc, hb, (half)2, 16);",
        ),
    ],
}
CASES = [
    (severity, code, *pair)
    for severity, table in (("error", PAIRS), ("warning", WARNINGS))
    for code, pairs in table.items()
    for pair in pairs
]
FIRST_LINE = 4  # of the prelude in the compiled kernel


def _sources():
    """The functions of all cases, and the line that each failing statement stands on."""
    text, lines = SETUP, []
    for number, (_, _, faulty, correct) in enumerate(CASES):
        for side, statement in ((0, faulty), (1, correct)):
            if side == 0:
                lines.append(FIRST_LINE + text.count("\n"))
            text += f"    void Body{2 * number + side}() {{ {statement} }}\n"
    return text + "};\n", lines


@pytest.fixture(scope="module")
def run(compile_kernel):
    text, _ = _sources()
    calls = "".join(f"        case {i}: scene.Body{i}(); break;\n" for i in range(2 * len(CASES)))
    body = f"    Scene scene;\n    scene.Begin(t);\n    switch (tiling.size[0]) {{\n{calls}    }}\n    scene.End();"
    kernel = compile_kernel(body, sizes=1, prelude=text)
    x = np.linspace(5, 1, 1024, dtype=np.float32)
    return lambda number: kernel.run([x], [(1024, np.float32)], [number])


def _name(case) -> str:
    return f"{case[1]}: {case[2].rsplit('; ', 1)[-1][:50]}"


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda i: _name(CASES[i]))
def test_pair(run, number) -> None:
    severity, code, _, _ = CASES[number]
    line = _sources()[1][number]
    found = [h for h in run(2 * number).result.hazards if h.severity == severity and h.code == code]
    assert found, run(2 * number).result
    assert {(h.line, h.file.rsplit("/", 1)[-1]) for h in found} == {(line, "op_kernel.cpp")}
    neighbour = run(2 * number + 1).result
    assert not [h for h in neighbour.hazards if h.severity == "error" or h.code == code], neighbour.hazards
