"""The device's name: tells machines apart, by samples of what their systems say."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import pytest

from hardcorenas.resources.timing import device_name as module
from hardcorenas.resources.timing.device_name import (
    Processor,
    describe_device,
    device_name,
    instruction_sets,
    linux_processor,
    mac_processor,
    windows_processor,
)

OLD_FLAGS = "fpu vme de pse tsc msr cx8 cmov mmx fxsr sse sse2 ht lm pni ssse3 sse4_1 sse4_2 popcnt"
AVX512_FLAGS = (
    f"{OLD_FLAGS} fma avx f16c bmi1 avx2 bmi2 avx512f avx512dq avx512cd avx512bw avx512vl"
)
GENOA_FLAGS = f"{AVX512_FLAGS} avx512_bf16 avx512vbmi vaes avx512_vnni avx512_bitalg fsrm"
AMX_FLAGS = (
    f"{AVX512_FLAGS} avx_vnni avx512_bf16 avx512_vnni amx_bf16 avx512_fp16 amx_tile amx_int8"
)


def x86(name, family, model, stepping, flags, cores=2):
    """The text of /proc/cpuinfo; the clock is another for every core and at every look."""
    block = """processor\t: {core}
vendor_id\t: GenuineIntel
cpu family\t: {family}
model\t\t: {model}
model name\t: {name}
stepping\t: {stepping}
microcode\t: 0x1000065
cpu MHz\t\t: {clock}
cache size\t: 1024 KB
flags\t\t: {flags}
bugs\t\t: sysret_ss_attrs spectre_v1
address sizes\t: 48 bits physical, 48 bits virtual
power management:

"""
    values = {"family": family, "model": model, "name": name, "stepping": stepping, "flags": flags}
    return "".join(block.format(core=i, clock=2596.1 + i, **values) for i in range(cores))


def arm(features, cores, implementer="0x41", end=""):
    """The text of /proc/cpuinfo for cores of (part, variant, revision)."""
    block = """processor\t: {core}
BogoMIPS\t: 108.00
Features\t: {features}
CPU implementer\t: {implementer}
CPU architecture: 8
CPU variant\t: {variant}
CPU part\t: {part}
CPU revision\t: {revision}

"""
    values = {"features": features, "implementer": implementer}
    blocks = [
        block.format(core=core, part=part, variant=variant, revision=revision, **values)
        for core, (part, variant, revision) in enumerate(cores)
    ]
    return "".join(blocks) + end


GENOA = x86("AMD EPYC", 25, 17, 1, GENOA_FLAGS)
SAPPHIRE_RAPIDS = x86("Intel(R) Xeon(R) Platinum 8488C", 6, 143, 8, AMX_FLAGS)
IVY_BRIDGE = x86("Intel(R) Core(TM) i7-3770 CPU @ 3.40GHz", 6, 58, 9, f"{OLD_FLAGS} avx f16c")

PI_FEATURES = "fp asimd evtstrm aes crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp"
PI_5_BOARD = "Raspberry Pi 5 Model B Rev 1.0"
PI_5_END = f"Revision\t: d04170\nSerial\t\t: 0123456789abcdef\nModel\t\t: {PI_5_BOARD}\n"
PI_5 = arm(PI_FEATURES, [("0xd0b", "0x4", 1)] * 4, end=PI_5_END)
LITTLE, BIG = ("0xd05", "0x2", 0), ("0xd0b", "0x4", 0)
ROCK_5 = arm(PI_FEATURES, [LITTLE] * 4 + [BIG] * 4)
GRAVITON_FEATURES = f"{PI_FEATURES} sha3 asimdfhm dit sve svei8mm svebf16 i8mm bf16 dgh rng"
GRAVITON_3 = arm(GRAVITON_FEATURES, [("0xd40", "0x1", 1)] * 2)

M2 = """machdep.cpu.cores_per_package: 8
machdep.cpu.core_count: 8
machdep.cpu.logical_per_package: 8
machdep.cpu.thread_count: 8
machdep.cpu.brand_string: Apple M2
hw.ncpu: 8
hw.byteorder: 1234
hw.memsize: 17179869184
hw.activecpu: 8
hw.nperflevels: 2
hw.perflevel0.physicalcpu: 4
hw.perflevel0.physicalcpu_max: 4
hw.perflevel0.l2cachesize: 16777216
hw.perflevel0.name: Performance
hw.perflevel1.physicalcpu: 4
hw.perflevel1.physicalcpu_max: 4
hw.perflevel1.l2cachesize: 4194304
hw.perflevel1.name: Efficiency
hw.optional.arm.FEAT_FHM: 1
hw.optional.arm.FEAT_DotProd: 1
hw.optional.arm.FEAT_SPECRES: 0
hw.optional.arm.FEAT_BF16: 1
hw.optional.arm.FEAT_I8MM: 1
hw.optional.arm.FEAT_FP16: 1
hw.optional.arm.FEAT_SME: 0
hw.optional.floatingpoint: 1
hw.optional.neon: 1
hw.optional.watchpoint: 4
hw.optional.AdvSIMD: 1
hw.optional.arm64: 1
hw.model: Mac14,2
"""
INTEL_MAC = """machdep.cpu.max_basic: 22
machdep.cpu.vendor: GenuineIntel
machdep.cpu.brand_string: Intel(R) Core(TM) i7-9750H CPU @ 2.60GHz
machdep.cpu.family: 6
machdep.cpu.model: 158
machdep.cpu.extmodel: 9
machdep.cpu.stepping: 10
machdep.cpu.features: FPU VME SSE SSE2 SSE3 FMA SSE4.1 SSE4.2 POPCNT AES XSAVE AVX1.0 RDRAND F16C
machdep.cpu.leaf7_features: RDWRFSGS SGX BMI1 AVX2 SMEP BMI2 ERMS ADX SMAP CLFSOPT
machdep.cpu.microcode_version: 222
hw.ncpu: 12
hw.optional.sse4_2: 1
hw.optional.avx1_0: 1
hw.optional.avx2_0: 1
hw.optional.avx512f: 0
"""


@pytest.mark.parametrize(
    ("processor", "cores", "system", "expected"),
    [
        (
            linux_processor(GENOA, ""),
            2,
            "Linux x86_64",
            "AMD EPYC (family 25 model 17 stepping 1), 2 cores, avx512 bf16 vnni, Linux x86_64",
        ),
        (
            linux_processor(SAPPHIRE_RAPIDS, "m7i.large"),
            2,
            "Linux x86_64",
            "Intel Xeon Platinum 8488C (family 6 model 143 stepping 8), 2 cores, "
            "avx512 amx bf16 fp16 vnni, Linux x86_64",
        ),
        (
            linux_processor(IVY_BRIDGE, ""),
            8,
            "Linux x86_64",
            "Intel Core i7-3770 @ 3.40GHz (family 6 model 58 stepping 9), 8 cores, "
            "avx, Linux x86_64",
        ),
        (
            linux_processor(PI_5, PI_5_BOARD),
            4,
            "Linux aarch64",
            "Raspberry Pi 5 Model B Rev 1.0 (Cortex-A76 r4p1), 4 cores, "
            "neon dotprod fp16, Linux aarch64",
        ),
        (
            linux_processor(ROCK_5, "Radxa ROCK 5B"),
            8,
            "Linux aarch64",
            "Radxa ROCK 5B (4x Cortex-A55 r2p0 + 4x Cortex-A76 r4p0), 8 cores, "
            "neon dotprod fp16, Linux aarch64",
        ),
        (
            linux_processor(GRAVITON_3, "c7g.large"),
            2,
            "Linux aarch64",
            "c7g.large (Neoverse-V1 r1p1), 2 cores, sve bf16 dotprod fp16 i8mm, Linux aarch64",
        ),
        (
            mac_processor(M2),
            8,
            "Darwin arm64",
            "Apple M2 (4+4), 8 cores, neon bf16 dotprod fp16 i8mm, Darwin arm64",
        ),
        (
            mac_processor(INTEL_MAC),
            12,
            "Darwin x86_64",
            "Intel Core i7-9750H @ 2.60GHz (family 6 model 158 stepping 10), 12 cores, "
            "avx2, Darwin x86_64",
        ),
        (
            windows_processor(
                "AMD Ryzen 9 7950X 16-Core Processor            ",
                "AMD64 Family 25 Model 97 Stepping 2",
            ),
            32,
            "Windows AMD64",
            "AMD Ryzen 9 7950X (family 25 model 97 stepping 2), 32 cores, Windows AMD64",
        ),
        (linux_processor("", ""), 1, " ", "unknown processor, 1 core"),
        (mac_processor(""), 1, "Darwin arm64", "unknown processor, 1 core, Darwin arm64"),
        (windows_processor("", ""), 3, "Windows", "unknown processor, 3 cores, Windows"),
    ],
)
def test_what_machines_are_called(processor, cores, system, expected):
    assert device_name(processor, cores, system) == expected
    assert len(expected) <= 110


@pytest.mark.parametrize(
    "other",
    [
        x86("AMD EPYC", 26, 17, 1, GENOA_FLAGS),
        x86("AMD EPYC", 25, 1, 1, GENOA_FLAGS),
        x86("AMD EPYC", 25, 17, 2, GENOA_FLAGS),
        x86("AMD EPYC", 25, 17, 1, AVX512_FLAGS),
        x86("AMD EPYC", 25, 17, 1, f"{OLD_FLAGS} avx avx2"),
        x86("AMD EPYC", 25, 17, 1, OLD_FLAGS),
        x86("AMD EPYC 9R14", 25, 17, 1, GENOA_FLAGS),
    ],
)
def test_x86_machines_that_differ_in_one_thing_have_different_names(other):
    assert linux_processor(other, "") != linux_processor(GENOA, "")


@pytest.mark.parametrize(
    ("text", "board"),
    [
        (ROCK_5, "Radxa ROCK 5A"),
        (arm(PI_FEATURES, [LITTLE] * 6 + [BIG] * 2), "Radxa ROCK 5B"),
        (arm(PI_FEATURES, [LITTLE] * 4 + [("0xd0b", "0x4", 1)] * 4), "Radxa ROCK 5B"),
        (arm(PI_FEATURES, [LITTLE] * 4 + [("0xd41", "0x4", 0)] * 4), "Radxa ROCK 5B"),
        (arm("fp asimd crc32", [LITTLE] * 4 + [BIG] * 4), "Radxa ROCK 5B"),
    ],
)
def test_arm_machines_that_differ_in_one_thing_have_different_names(text, board):
    assert linux_processor(text, board) != linux_processor(ROCK_5, "Radxa ROCK 5B")


def test_macs_that_differ_in_kinds_of_cores_have_different_names():
    other = M2.replace("perflevel0.physicalcpu_max: 4", "perflevel0.physicalcpu_max: 6")
    assert mac_processor(other) != mac_processor(M2)


def test_what_changes_while_a_machine_runs_is_not_in_its_name():
    assert linux_processor(GENOA.replace("2596", "3700"), "") == linux_processor(GENOA, "")
    saving = M2.replace("perflevel0.physicalcpu: 4", "perflevel0.physicalcpu: 2")
    assert mac_processor(saving) == mac_processor(M2)


def test_the_order_of_flags_and_of_cores_does_not_matter():
    backwards = " ".join(reversed(AMX_FLAGS.split()))
    assert instruction_sets(backwards.split()) == instruction_sets(AMX_FLAGS.split())
    big_first = arm(PI_FEATURES, [BIG] * 4 + [LITTLE] * 4)
    assert linux_processor(big_first, "") == linux_processor(ROCK_5, "")


def test_a_core_without_a_name_has_its_numbers():
    text = arm("fp asimd", [("0x804", "0xd", 14)], implementer="0x51")
    assert linux_processor(text, "") == Processor("ARM 0x51:0x804 r13p14", "neon")


def test_a_board_is_also_found_in_what_the_kernel_says_of_the_processor():
    assert linux_processor(PI_5, "") == linux_processor(PI_5, PI_5_BOARD)
    phone = arm(PI_FEATURES, [BIG], end="Hardware\t: Qualcomm Technologies, Inc SM8250\n")
    assert linux_processor(phone, "").name.startswith("Qualcomm Technologies, Inc SM8250 (")


def test_arm_of_32_bits_is_not_called_by_its_vague_model_name():
    text = "model name\t: ARMv7 Processor rev 4 (v7l)\n" + arm("half neon", [("0xd03", "0x0", 4)])
    assert linux_processor(text, "") == Processor("Cortex-A53 r0p4", "neon")


@pytest.mark.parametrize(
    "text",
    ["", "\n\n:\n", "no colon", "CPU part", "CPU part:", "model name:", "flags: avx2", "model: 1"],
)
def test_half_a_text_is_no_error(text):
    for processor in (linux_processor(text, ""), mac_processor(text), windows_processor(text, "")):
        assert device_name(processor, 1, "Linux")


@pytest.mark.parametrize("text", [GENOA, GRAVITON_3, M2, INTEL_MAC])
def test_any_lines_may_be_missing(text):
    lines = text.splitlines(keepends=True)
    for missing in range(len(lines)):
        left = "".join(lines[:missing] + lines[missing + 1 :])
        for processor in (linux_processor(left, ""), mac_processor(left)):
            name = device_name(processor, 2, "x")
            assert "()" not in name
            assert ", ," not in name


def test_windows_without_a_registry_says_the_identifier():
    identifier = "Intel64 Family 6 Model 158 Stepping 10, GenuineIntel"
    assert windows_processor("", identifier).name == identifier
    assert windows_processor("Intel(R) Core(TM) i7", "").name == "Intel Core i7"


def test_this_machine_has_the_same_name_twice():
    name = describe_device()
    assert name == describe_device()
    assert f"{os.cpu_count()} core" in name
    assert name.endswith(f"{platform.system()} {platform.machine()}")


@pytest.mark.parametrize("system", ["Linux", "Darwin", "Windows", "Plan 9", ""])
def test_a_system_that_says_nothing_is_no_error(monkeypatch, system):
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: "")
    monkeypatch.setattr(platform, "processor", lambda: "")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    monkeypatch.setattr(module, "_CPU_INFO", Path("/no/such"))
    monkeypatch.setattr(module, "_BOARDS", (Path("/no/such"),))
    monkeypatch.setattr(module, "_SYSCTL", ("/no/such",))
    monkeypatch.setattr(module, "_windows_names", lambda: ("", ""))
    monkeypatch.delenv("PROCESSOR_IDENTIFIER", raising=False)
    assert describe_device() == ", ".join(filter(None, ("unknown processor", "1 core", system)))


def test_a_sysctl_that_hangs_is_no_error(monkeypatch):
    def hang(command, **options):
        raise subprocess.TimeoutExpired(command, options["timeout"])

    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "processor", lambda: "arm")
    monkeypatch.setattr(subprocess, "run", hang)
    assert describe_device().startswith("arm, ")


def test_files_are_read_as_systems_write_them(monkeypatch, tmp_path):
    (tmp_path / "cpuinfo").write_text(ROCK_5)
    (tmp_path / "model").write_bytes(b"Radxa ROCK 5B\0")
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(module, "_CPU_INFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(module, "_BOARDS", (tmp_path / "missing", tmp_path / "model"))
    assert describe_device().startswith("Radxa ROCK 5B (4x Cortex-A55 r2p0 + 4x Cortex-A76 r4p0), ")
