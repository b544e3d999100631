# Two commands do everything on a fresh machine: `make demo` and `make test`.
# Everything is installed into .venv in this folder; nothing else is touched.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo examples check test docs commands pictures lint format bench stress experiments experiments-cifar10 \
	experiments-photographs experiments-quick clean

setup: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "hardcorenas needs Python 3.11 or newer; set PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: setup
	$(BIN)/hardcorenas run examples/demo.toml

# What README and docs show in Python; five minutes.
examples: setup
	$(BIN)/python examples/first_network.py
	$(BIN)/python examples/hard_budgets.py
	$(BIN)/python examples/latency_budget.py
	$(BIN)/python examples/whole_job.py

# While you work: format, lint, types, and the tests that need no training, no clock and no browser.
check: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"

# Two processes of tests, each with one thread: threads would only wait for each other.
test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

# The reference of all names, from their docstrings: site/api/index.html
docs: setup
	$(BIN)/python docs/api.py site/api

# Every command that README and docs show: an hour, on a machine that has nothing else to do.
commands: setup
	$(BIN)/python docs/run_commands.py

# The pictures of reports in README and docs; needs Chromium, and twenty minutes.
pictures: demo
	$(BIN)/hardcorenas sweep examples/demo.toml --budgets 40%,55%,70%
	$(BIN)/hardcorenas front runs/demo --table runs/demo/table.json --budget params=90K
	$(BIN)/python docs/report_pictures.py runs/demo

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/training_speed.py
	$(BIN)/python benchmarks/solver.py
	$(BIN)/python benchmarks/latency_settings.py
	$(BIN)/python benchmarks/one_shot.py
	$(BIN)/python benchmarks/depthwise.py
	$(BIN)/python benchmarks/input_speed.py
	$(BIN)/python benchmarks/report_page.py
	$(BIN)/python benchmarks/exploring.py

# 100,000 random problems through the whole solver; about 20 minutes on two cores.
stress: setup
	$(BIN)/python tests/stress.py --problems 100000 --processes 2

# The latency experiments want the machine to themselves for an hour and a half. The last two take
# an hour; the first of these needs the run of `make demo`.
experiments: setup
	$(BIN)/python experiments/toy_problem.py
	$(BIN)/python experiments/initial_points.py
	$(BIN)/python experiments/opponents_synthetic.py
	$(BIN)/python experiments/one_shot_dealing.py
	$(BIN)/python experiments/latency_formula.py
	$(BIN)/python experiments/latency_steps.py
	$(BIN)/python experiments/latency_kept.py --table docs/results/mobile-onnxruntime.json
	$(BIN)/python experiments/latency_kept.py --table docs/results/mobile-torch.json
	$(BIN)/python experiments/latency_kept.py --table docs/results/rgb32-onnxruntime.json
	$(BIN)/python experiments/latency_kept.py --table docs/results/rgb32-torch.json
	$(BIN)/python experiments/latency_kept.py --table docs/results/rgb32-onnxruntime.json --percentile 95
	$(BIN)/python experiments/latency_under_load.py --table docs/results/rgb32-onnxruntime.json
	$(BIN)/python experiments/latency_bundle.py --table docs/results/mobile-onnxruntime.json
	$(BIN)/python experiments/demo_latency.py --runs 5 compare.random=0
	$(BIN)/python experiments/hard_searches.py --run runs/demo --budgets 4 --seeds 1
	$(BIN)/python experiments/found_against_random.py --seeds 2 --networks 6 --table docs/results/gray28-onnxruntime.json

# The experiments on CIFAR-10: eight to ten hours on two cores. All of it goes on where it was. The
# benchmark's file is not ours to pass on; put it here.
experiments-cifar10: setup
	$(BIN)/python tools/fetch_data.py cifar10
	$(BIN)/python experiments/one_shot_models.py
	$(BIN)/python experiments/accuracy_latency.py --seeds 2
	$(BIN)/python experiments/projections.py --seeds 2
	$(BIN)/python experiments/hard_against_soft.py
	$(BIN)/python experiments/initial_gain.py
	$(BIN)/python experiments/mathematics.py
	$(BIN)/python experiments/two_for_one.py
	$(BIN)/python experiments/rank_correlation.py
	$(BIN)/python experiments/mixed_families.py
	$(BIN)/python experiments/second_phase.py
	$(BIN)/python experiments/nas_bench_macro.py --truth nas-bench-macro_cifar10.json
	$(BIN)/python experiments/known_accuracies.py --truth nas-bench-macro_cifar10.json
	$(BIN)/python experiments/search_methods.py --seeds 2

# Photographs from trained weights: two hours on two cores. The archive is not ours to pass on; put it here.
experiments-photographs: setup
	$(BIN)/python experiments/photographs.py --data tiny-imagenet-20.tar --budget 0.645ms

# Every script under experiments/ at a toy size, so that none of them rots.
QUICK := runs/experiments-quick
experiments-quick: setup
	rm -rf $(QUICK)
	$(BIN)/python experiments/toy_problem.py --steps 20 --out $(QUICK)
	$(BIN)/python experiments/initial_points.py --out $(QUICK)
	$(BIN)/python experiments/opponents_synthetic.py --evaluations 30 --seeds 1 --out $(QUICK)
	$(BIN)/python experiments/latency_formula.py --spaces gray28 --minutes 0.1 --out $(QUICK)
	$(BIN)/python experiments/latency_steps.py --space gray28 --minutes 0.1 --out $(QUICK)/results
	$(BIN)/python experiments/latency_kept.py --table $(QUICK)/results/gray28-onnxruntime.json --networks 1 --seconds 1 --out $(QUICK)/results
	$(BIN)/python experiments/latency_under_load.py --table $(QUICK)/results/gray28-onnxruntime.json --networks 1 --seconds 1 --out $(QUICK)/results
	$(BIN)/python experiments/demo_latency.py --runs 1 --folder $(QUICK)/demo_latency --out $(QUICK)/results training.heaviest_epochs=1 training.paths_epochs=1 search.epochs=1 search.local_networks=2 finetune.epochs=1 device.minutes=0.1 compare.random=0
	$(BIN)/python experiments/latency_bundle.py --table $(QUICK)/results/gray28-onnxruntime.json --minutes 0.1 --out $(QUICK)/results
	$(BIN)/python experiments/one_shot_models.py --quick
	$(BIN)/python experiments/accuracy_latency.py --quick
	$(BIN)/python experiments/projections.py --quick
	$(BIN)/python experiments/hard_against_soft.py --quick
	$(BIN)/python experiments/initial_gain.py --quick
	$(BIN)/python experiments/mathematics.py --quick
	$(BIN)/python experiments/two_for_one.py --quick
	$(BIN)/python experiments/rank_correlation.py --quick
	$(BIN)/python experiments/mixed_families.py --quick
	$(BIN)/python experiments/photographs.py --quick
	$(BIN)/python experiments/second_phase.py --quick
	$(BIN)/python experiments/nas_bench_macro.py --quick
	$(BIN)/python experiments/known_accuracies.py --quick
	$(BIN)/python experiments/search_methods.py --quick
	$(BIN)/python experiments/one_shot_dealing.py --quick --out $(QUICK)/results/one_shot_dealing.json
	$(BIN)/python experiments/hard_searches.py --run $(QUICK)/supernet --table docs/results/gray28-onnxruntime.json --budgets 1 --seeds 1 --local-networks 2 --out $(QUICK)/results/hard_searches.json
	$(BIN)/python experiments/found_against_random.py --quick --seeds 1 --networks 2 --table docs/results/gray28-onnxruntime.json --folder $(QUICK)/found_against_random --out $(QUICK)/results/found_against_random.json

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist site
