"""The whole job in Python, step by step: what `hardcorenas run` does, to read and to change.

The recipe is short, so that it takes about three minutes on two cores; docs/training.md has more.
Started again, it goes on where it was. Run: python examples/whole_job.py
"""

from pathlib import Path

import hardcorenas as hc

FOLDER, TABLE = Path("runs/whole_job"), Path("runs/whole_job.table.json")

if __name__ == "__main__":
    # What can be built, and what each choice costs on this machine.
    space = hc.SearchSpace.preset("gray28")
    if not TABLE.exists():
        hc.measure(space, target="onnxruntime", threads=1, minutes=0.7).save(TABLE)
    latency = hc.ResourceTable.load(TABLE)
    budgets = [hc.Budget(latency, "50%"), hc.Budget(hc.count(space, "params"), "80K")]

    # One model that holds all networks; the best network in it that keeps both budgets.
    run = hc.train(space, "fashion-mnist-sample", FOLDER, heaviest_epochs=3, paths_epochs=6)
    found = hc.search(run, budgets, processes=2)
    print("found:", found.architecture, found.costs)

    # Its own training, led by the heaviest network.
    tuned = hc.finetune(run, found.architecture, found.folder / "finetune", epochs=3)
    print(f"accuracy: {tuned.accuracy:.1%} on {tuned.judged_on} images")

    # Files that ship, each loaded again and compared; then the proof.
    network = run.finetuned(found.folder / "finetune")
    hc.export(network, run.card(found.architecture), found.folder)
    certificate = hc.certify(found.folder / "network.onnx", budgets, seconds=10)
    print("certificate:", certificate.verdict)

    # Anyone can load it again, as a plain torch.nn.Module.
    print(f"loaded again: {hc.evaluate(hc.load(found.folder), run):.1%}")
