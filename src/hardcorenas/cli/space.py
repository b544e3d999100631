"""``hardcorenas space``: what can be built, and what it costs by arithmetic."""

from __future__ import annotations

import json
import textwrap
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from hardcorenas.cli.arguments import WholeNumber, changed_space, chosen_architecture
from hardcorenas.cli.terminal import print_table, text_table
from hardcorenas.errors import HardcorenasError, InvalidArchitectureError, shown
from hardcorenas.files import is_file
from hardcorenas.networks import layout
from hardcorenas.resources.table import count
from hardcorenas.resources.units import COUNTED
from hardcorenas.space import Architecture, SearchSpace, preset_names, preset_text

if TYPE_CHECKING:
    from hardcorenas.families import Family
    from hardcorenas.resources import ResourceTable


def space(
    space: str | None = None,
    /,
    *,
    architecture: Annotated[str | None, Parameter(name=["--architecture", "-a"])] = None,
    resolution: WholeNumber | None = None,
    classes: WholeNumber | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="", show_default=False)] = False,
    as_toml: Annotated[bool, Parameter(name="--toml", negative="", show_default=False)] = False,
) -> None:
    """Show a search space, or one network of it: stages, size, MACs, parameters, memory.

    Args:
        space: A preset's name or a TOML file. Without it, the presets are listed.
        architecture: One network, block by block: an architecture file, the word lightest or
            heaviest, or its compact form such as "e3k5 e3k5se | e4k3 e4k3".
        resolution: Side of the image in pixels, instead of the space's own.
        classes: Number of classes, instead of the space's own.
        as_json: Print JSON for programs.
        as_toml: Print a preset's declaration, to be saved and changed.
    """
    if as_toml:
        if space not in preset_names():
            raise HardcorenasError(
                f"--toml prints a preset ({', '.join(preset_names())}), got {space or 'no name'}"
            )
        if as_json or (architecture, resolution, classes) != (None, None, None):
            raise HardcorenasError("--toml prints a preset as it is; leave the other options out")
        print(preset_text(space), end="")
        return
    chosen = _chosen_space(space, architecture)
    if chosen is None:
        if (resolution, classes) != (None, None):
            raise HardcorenasError("--resolution and --classes need a space to change; name one")
        _list_presets(as_json)
        return
    chosen = changed_space(chosen, resolution, classes)
    tables = {resource: count(chosen, resource) for resource in COUNTED}
    network = None if architecture is None else chosen_architecture(chosen, architecture)
    if as_json:
        described = _network_json(network, tables) if network else _space_json(chosen, tables)
        print(json.dumps(described, indent=2))
    elif network:
        _print_network(network, tables)
    else:
        _print_space(chosen, tables)


def _chosen_space(space: str | None, architecture: str | None) -> SearchSpace | None:
    if space is not None:
        return SearchSpace.load(space)
    if architecture is None:
        return None
    if is_file(architecture):
        return Architecture.load(architecture).space  # the file carries its space
    raise HardcorenasError(
        f"--architecture {shown(architecture)} is not a file; name the space it belongs to"
    )


def _list_presets(as_json: bool) -> None:
    spaces = [SearchSpace.preset(name) for name in preset_names()]
    if as_json:
        print(json.dumps([{"name": s.name, "size": s.size} for s in spaces], indent=2))
        return
    table = text_table("preset", "image", "classes", "stages", "architectures", "MACs")
    for space in spaces:
        macs = count(space, "macs")
        table.add_row(
            space.name,
            f"{space.resolution}×{space.resolution}×{space.input_channels}",
            str(space.num_classes),
            str(len(space.stages)),
            f"{Decimal(space.size):.2e}",
            f"{_short(macs.cost(space.lightest))} … {_short(macs.cost(space.heaviest))}",
        )
    print_table(table)
    print("\nOne of them in detail:   hardcorenas space mobile")
    print("A space of your own:     hardcorenas space mobile --toml > my.toml")


def _print_space(space: SearchSpace, tables: dict[str, ResourceTable]) -> None:
    print(
        f"{space.name}: {space.resolution}×{space.resolution}×{space.input_channels} images, "
        f"{space.num_classes} classes"
    )
    if space.resolutions:
        sides = ", ".join(map(str, space.resolutions))
        print(f"resolutions: {sides}; what follows is at {space.resolution}")
    size = f"{space.size:,}" if space.size < 10**40 else f"{Decimal(space.size):.2e}"
    print(f"{size} architectures\n")
    stages = text_table("stage", "width", "stride", "activation", "depths", "blocks")
    stages.columns[-1].justify = "left"
    stem = space.stem
    stages.add_row("stem", str(stem.width), str(stem.stride), stem.activation)
    if stem.block_width:
        stages.add_row("", str(stem.block_width), "1", stem.block_activation)
    for number, stage in enumerate(space.stages):
        sizes = [str(number), str(stage.width), str(stage.stride), stage.activation]
        first = [*sizes, _words(stage.depths)]
        for family in stage.families:
            stages.add_row(*first, _allowed(family))
            first = [""] * len(first)
    stages.add_row("head", str(space.head.width), "1", space.head.activation)
    if space.head.hidden_width:
        stages.add_row("", str(space.head.hidden_width), "", space.head.activation)
    print_table(stages)
    print()
    ends = text_table("network", "MACs", "parameters", "memory")
    for name, architecture in (("lightest", space.lightest), ("heaviest", space.heaviest)):
        ends.add_row(name, *_amounts(architecture, tables))
    print_table(ends)
    print("\nMACs and memory are those of one image; memory is the peak of activations.")


def _print_network(architecture: Architecture, tables: dict[str, ResourceTable]) -> None:
    print(textwrap.fill(f"{architecture.space.name}: {architecture}", 80), end="\n\n")
    blocks = text_table("block", "choice", "channels", "pixels", "MACs", "parameters", "memory")
    for row in _rows(architecture, tables):
        blocks.add_row(
            row["block"],
            row["choice"],
            f"{row['in_channels']}→{row['out_channels']}",
            f"{row['in_size']}→{row['out_size']}",
            f"{row['macs']:,}",
            f"{row['params']:,}",
            _bytes(row["memory"]),
        )
    blocks.add_section()
    blocks.add_row("network", "", "", "", *_amounts(architecture, tables))
    print_table(blocks)
    print("\nMACs and parameters add up; memory is the peak of the neediest block.")


def _rows(architecture: Architecture, tables: dict[str, ResourceTable]) -> list[dict[str, Any]]:
    """Return what each block is and costs, the fixed part last."""
    costs = {resource: list(table.block_costs(architecture)) for resource, table in tables.items()}
    rows: list[dict[str, Any]] = []
    for stage, shapes in enumerate(layout.block_shapes(architecture)):
        for position, shape in enumerate(shapes):
            rows.append(
                {
                    "block": f"{stage}.{position}",
                    "choice": str(architecture.stages[stage][position]),
                    "in_channels": shape.slot.in_channels,
                    "out_channels": shape.slot.out_channels,
                    "in_size": shape.slot.in_size,
                    "out_size": shape.slot.out_size,
                }
                | {resource: costs[resource][stage][position] for resource in tables}
            )
    space = architecture.space
    fixed = {
        "block": "stem, head",
        "choice": "",
        "in_channels": space.input_channels,
        "out_channels": space.num_classes,
        "in_size": space.resolution,
        "out_size": 1,
    }
    return [*rows, fixed | {resource: table.base for resource, table in tables.items()}]


def _space_json(space: SearchSpace, tables: dict[str, ResourceTable]) -> dict[str, Any]:
    ends = {"lightest": space.lightest, "heaviest": space.heaviest}
    return {
        "space": space.to_dict(),
        "fingerprint": space.fingerprint,
        "size": space.size,
        "networks": {name: _totals(end, tables) for name, end in ends.items()},
    }


def _network_json(architecture: Architecture, tables: dict[str, ResourceTable]) -> dict[str, Any]:
    return {
        "space": architecture.space.name,
        "architecture": str(architecture),
        "timm": _timm(architecture),
        **_totals(architecture, tables),
        "blocks": _rows(architecture, tables),
    }


def _timm(architecture: Architecture) -> list[list[str]] | None:
    try:
        return architecture.to_timm()
    except InvalidArchitectureError:
        return None  # timm has no such blocks


def _totals(architecture: Architecture, tables: dict[str, ResourceTable]) -> dict[str, int]:
    return {resource: table.cost(architecture) for resource, table in tables.items()}


def _amounts(architecture: Architecture, tables: dict[str, ResourceTable]) -> list[str]:
    totals = _totals(architecture, tables)
    return [f"{totals['macs']:,}", f"{totals['params']:,}", _bytes(totals["memory"])]


def _allowed(family: Family) -> str:
    """Return a family and its options, such as "inverted residual e2,4 k3,5 ±se"."""
    words = [family.name.replace("_", " ")]
    for axis, values in family.options:
        if isinstance(values[0], bool):
            words += {(True,): [axis], (False, True): [f"±{axis}"]}.get(values, [])
        else:
            words.append(f"{axis[0]}{','.join(map(str, values))}")
    return " ".join(words)


def _words(values: Any) -> str:
    return " ".join(map(str, values))


def _bytes(number: int) -> str:
    return f"{number / 1024:,.0f} KiB"


def _short(number: int) -> str:
    return f"{number / 1e6:.1f} M"
