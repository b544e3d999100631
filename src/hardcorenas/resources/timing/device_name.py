"""The machine in words: what a latency table is bound to.

The words come from the operating system, are the same at every start, and differ between machines
of different speed. What a system does not tell is left out. So is what changes while it runs, such
as the clock.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_CPU_INFO = Path("/proc/cpuinfo")
# Boards have the first, servers and virtual machines the second.
_BOARDS = (Path("/proc/device-tree/model"), Path("/sys/class/dmi/id/product_name"))
# Whole branches, since which single names there are depends on the version of macOS.
_SYSCTL = ("/usr/sbin/sysctl", "machdep.cpu", "hw")
_WINDOWS_KEY = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"

# Our words for the instruction sets that decide the speed of networks, each with the names that
# Linux and macOS have for it, in small letters. The widest vectors come first: they imply the rest.
_WIDTHS = {
    "avx512": {"avx512f"},
    "avx2": {"avx2"},
    "avx": {"avx", "avx1.0"},
    "sse4_2": {"sse4_2", "sse4.2"},
    "sve2": {"sve2"},
    "sve": {"sve"},
    "neon": {"asimd", "neon"},
}
_EXTRAS = {
    "amx": {"amx_tile"},
    "bf16": {"avx512_bf16", "avx512bf16", "bf16", "feat_bf16"},
    "dotprod": {"asimddp", "feat_dotprod"},
    "fp16": {"avx512_fp16", "asimdhp", "feat_fp16"},
    "i8mm": {"i8mm", "feat_i8mm"},
    "sme": {"sme", "feat_sme"},
    "vnni": {"avx512_vnni", "avx512vnni", "avx_vnni"},
}

# By implementer and part; Linux gives only these numbers.
_ARM_CORES = {
    ("0x41", "0xc07"): "Cortex-A7",
    ("0x41", "0xd03"): "Cortex-A53",
    ("0x41", "0xd04"): "Cortex-A35",
    ("0x41", "0xd05"): "Cortex-A55",
    ("0x41", "0xd07"): "Cortex-A57",
    ("0x41", "0xd08"): "Cortex-A72",
    ("0x41", "0xd09"): "Cortex-A73",
    ("0x41", "0xd0a"): "Cortex-A75",
    ("0x41", "0xd0b"): "Cortex-A76",
    ("0x41", "0xd0c"): "Neoverse-N1",
    ("0x41", "0xd0d"): "Cortex-A77",
    ("0x41", "0xd40"): "Neoverse-V1",
    ("0x41", "0xd41"): "Cortex-A78",
    ("0x41", "0xd42"): "Cortex-A78AE",
    ("0x41", "0xd44"): "Cortex-X1",
    ("0x41", "0xd46"): "Cortex-A510",
    ("0x41", "0xd47"): "Cortex-A710",
    ("0x41", "0xd48"): "Cortex-X2",
    ("0x41", "0xd49"): "Neoverse-N2",
    ("0x41", "0xd4b"): "Cortex-A78C",
    ("0x41", "0xd4d"): "Cortex-A715",
    ("0x41", "0xd4e"): "Cortex-X3",
    ("0x41", "0xd4f"): "Neoverse-V2",
    ("0x41", "0xd80"): "Cortex-A520",
    ("0x41", "0xd81"): "Cortex-A720",
    ("0x41", "0xd82"): "Cortex-X4",
    ("0x41", "0xd84"): "Neoverse-V3",
    ("0x41", "0xd8e"): "Neoverse-N3",
    ("0x4e", "0x004"): "Carmel",
    ("0x61", "0x022"): "Apple Icestorm",
    ("0x61", "0x023"): "Apple Firestorm",
    ("0x61", "0x032"): "Apple Blizzard",
    ("0x61", "0x033"): "Apple Avalanche",
}


class Processor(NamedTuple):
    """What a system says of its processor; either may be empty."""

    name: str = ""
    instruction_sets: str = ""


def describe_device() -> str:
    """Return processor, cores, instruction sets and platform of this machine."""
    processor = _processor_here()
    if not processor.name:
        processor = processor._replace(name=plain(platform.processor()))
    return device_name(processor, os.cpu_count() or 1, f"{platform.system()} {platform.machine()}")


def device_name(processor: Processor, cores: int, system: str) -> str:
    """Return the one line of all that is known."""
    counted = f"{cores} core" if cores == 1 else f"{cores} cores"
    name = processor.name or "unknown processor"
    return ", ".join(filter(None, (name, counted, processor.instruction_sets, system.strip())))


def linux_processor(cpu_info: str, board: str) -> Processor:
    """Read ``/proc/cpuinfo``, which on ARM does not name the machine; its board does."""
    blocks = [_fields(block) for block in re.split(r"\n\s*\n", cpu_info)]
    arm = [block for block in blocks if "CPU part" in block]
    if arm:
        # Containers hide the board's file, and phones have none; some kernels say it here too.
        said = [block[key] for key in ("Model", "Hardware") for block in blocks if key in block]
        name = next(filter(None, map(plain, (board, *said))), "")
        sets = instruction_sets(arm[0].get("Features", "").split())
        return Processor(_with_details(name, _arm_cores(arm)), sets)
    first = next((block for block in blocks if block.get("model name")), {})
    name = _x86_name(first, ("model name", "cpu family", "model", "stepping")) or plain(board)
    return Processor(name, instruction_sets(first.get("flags", "").split()))


def mac_processor(sysctl: str) -> Processor:
    """Read the lines of ``sysctl machdep.cpu hw``."""
    fields = _fields(sysctl)
    keys = [f"machdep.cpu.{key}" for key in ("brand_string", "family", "model", "stepping")]
    # Fast cores are level 0. The maximum: what is switched on depends on how power is saved.
    levels = [fields.get(f"hw.perflevel{level}.physicalcpu_max", "") for level in range(3)]
    kinds = "+".join(filter(None, levels)) if levels[1] else ""
    return Processor(
        _with_details(_x86_name(fields, keys), kinds), instruction_sets(_mac_features(fields))
    )


def windows_processor(name: str, identifier: str) -> Processor:
    """Name a processor by the registry's name and such as ``Intel64 Family 6 Model 158 …``."""
    version = re.search(r"Family \w+ Model \w+ (?:Stepping|Revision) \w+", identifier)
    if not name.strip() or version is None:
        return Processor(plain(name) or plain(identifier))
    return Processor(_with_details(plain(name), version[0].lower()))


def instruction_sets(features: Iterable[str]) -> str:
    """Return our words for those that matter: the widest vectors, then what comes on top."""
    known = set(features)
    widest = [word for word, names in _WIDTHS.items() if names & known][:1]
    return " ".join(widest + [word for word, names in _EXTRAS.items() if names & known])


def plain(name: str) -> str:
    """Return a processor's name without trademarks and words that any processor could have."""
    noise = r"\((?:R|TM)\)|\b(?:\d+-Core )?Processor\b|\bCPU\b"
    return " ".join(re.sub(noise, "", name, flags=re.IGNORECASE).split())


def _x86_name(fields: Mapping[str, str], keys: Iterable[str]) -> str:
    """Return the name and, since those of virtual machines are vague, the numbers behind it.

    Args:
        fields: What the system says.
        keys: What it calls name, family, model and stepping.
    """
    name, *numbers = [fields.get(key, "") for key in keys]
    words = zip(("family", "model", "stepping"), numbers, strict=True)
    return _with_details(
        plain(name), " ".join(f"{word} {number}" for word, number in words if number)
    )


def _arm_cores(blocks: Iterable[Mapping[str, str]]) -> str:
    """Return the kinds of cores; how many of each if there are several."""
    kinds = sorted(Counter(map(_arm_core, blocks)).items())
    if len(kinds) == 1:
        return kinds[0][0]
    return " + ".join(f"{count}x {kind}" for kind, count in kinds)


def _arm_core(block: Mapping[str, str]) -> str:
    implementer, part = block.get("CPU implementer", "?"), block["CPU part"]
    name = _ARM_CORES.get((implementer.lower(), part.lower()), f"ARM {implementer}:{part}")
    variant, revision = block.get("CPU variant", ""), block.get("CPU revision", "")
    if not revision or re.fullmatch(r"0x[0-9a-f]+", variant) is None:
        return name
    return f"{name} r{int(variant, 16)}p{revision}"  # as ARM writes it


def _mac_features(fields: Mapping[str, str]) -> list[str]:
    """Return the features of an Intel processor, which are lists, and of Apple's, one a line."""
    lists = ("machdep.cpu.features", "machdep.cpu.leaf7_features")
    listed = " ".join(fields.get(key, "") for key in lists).lower().split()
    optional = (key for key, value in fields.items() if value == "1")
    return listed + [
        key.rpartition(".")[2].lower() for key in optional if key.startswith("hw.optional.")
    ]


def _with_details(name: str, details: str) -> str:
    return f"{name} ({details})" if name and details else name or details


def _fields(text: str) -> dict[str, str]:
    """Return what lines of ``key: value`` say."""
    parts = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, _, value in parts}


def _processor_here() -> Processor:
    match platform.system():
        case "Darwin":
            return mac_processor(_output(_SYSCTL))
        case "Windows":
            name, identifier = _windows_names()
            return windows_processor(name, identifier or os.environ.get("PROCESSOR_IDENTIFIER", ""))
    board = next(filter(None, map(_text, _BOARDS)), "")
    return linux_processor(_text(_CPU_INFO), board)


def _text(path: Path) -> str:
    try:
        # The strings of a device tree end in a zero.
        return path.read_text(encoding="utf-8", errors="replace").replace("\0", "").strip()
    except OSError:
        return ""


def _output(command: Iterable[str]) -> str:
    try:
        done = subprocess.run([*command], capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode(errors="replace")


def _windows_names() -> tuple[str, str]:
    """Return the name and the identifier that the registry has."""
    if sys.platform == "win32":
        import winreg

        try:
            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, _WINDOWS_KEY) as key:
                name, _ = winreg.QueryValueEx(key, "ProcessorNameString")
                identifier, _ = winreg.QueryValueEx(key, "Identifier")
            return str(name), str(identifier)
        except OSError:
            pass
    return "", ""
