"""The whole job in Python, step by step: what `hardcorenas run` does, to read and to change.

The recipe is short, so that it takes about three minutes on two cores; docs/training.md has more.
Run: python examples/whole_job.py
"""

from __future__ import annotations

from pathlib import Path

import hardcorenas as hc
from hardcorenas.networks.card import Card
from hardcorenas.train.data import evaluation_batches
from hardcorenas.train.finetune import FinetuneJob, finetune, load_finetuned
from hardcorenas.train.job import Job
from hardcorenas.train.recipe import SMALL
from hardcorenas.train.supernet_training import train_supernet
from hardcorenas.train.trained import TrainedSupernet

FOLDER, TABLE = Path("runs/whole_job"), Path("runs/whole_job.table.json")


def main() -> None:
    """Go from images and budgets to a certified network."""
    # What can be built, and what each choice costs on this machine.
    space = hc.SearchSpace.preset("gray28")
    if not TABLE.exists():
        hc.measure(space, target="onnxruntime", threads=1, minutes=0.7).save(TABLE)
    latency = hc.ResourceTable.load(TABLE)
    budgets = [hc.Budget(latency, "50%"), hc.Budget(hc.count(space, "params"), "80K")]
    print("budgets:", ", ".join(map(str, budgets)))

    # One model that holds all networks; it goes on where it was if this script is started again.
    recipe = SMALL.replace(heaviest_epochs=3, paths_epochs=6)
    job = Job(space, "fashion-mnist-sample", recipe, FOLDER, resume=True)
    supernet = train_supernet(job, processes=2)

    # The best network that keeps both budgets, by the gradients on images kept from training.
    data = TrainedSupernet.open(FOLDER).data()
    batches = list(
        evaluation_batches(
            data.heldout,
            mean=data.mean,
            std=data.std,
            resolution=data.resolution,
            batch_size=32,
        )
    )
    result = hc.search_architecture(supernet, batches, budgets)
    print("found:", result.architecture)
    for budget in budgets:
        print(f"  {budget}: {budget.table.cost(result.architecture):,} {budget.table.unit}")

    # Its own training, led by the heaviest network.
    tuning = FinetuneJob(FOLDER, result.architecture, FOLDER / "finetune", epochs=3)
    (tuned,) = finetune([tuning], processes=2)
    print(f"right: {tuned.test:.1%} of test images")

    # Files that ship, each loaded again and compared; then the proof.
    card = Card(result.architecture, data.classes, data.mean, data.std)
    for file in hc.export(load_finetuned(tuning), card, FOLDER).exported:
        print(f"  {FOLDER / file.file}: within {file.largest_difference:.0e}")
    certificate = hc.certify(FOLDER / "network.onnx", budgets, seconds=10)
    print("certificate:", certificate.verdict)

    # Anyone can load it again, as a plain torch.nn.Module.
    network = hc.load(FOLDER / "network.safetensors")
    images, labels = batches[0]
    print("classes:", [data.classes[i] for i in network(images).argmax(1)[:4].tolist()])
    print("labels: ", [data.classes[i] for i in labels[:4].tolist()])


if __name__ == "__main__":
    main()
