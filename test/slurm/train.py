# SPDX-License-Identifier: MIT
"""What the scripts of examples/slurm run in their test: a job that notes which
samples it has read."""

import argparse
import json
import os

parser = argparse.ArgumentParser()
parser.add_argument("--out", required=True)
parser.add_argument("--root")  # None: the stream runs, and is called data
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=2)
args = parser.parse_args()

group = int(os.environ.get("WORLD_SIZE", "1")) > 1
if group:
    import torch

    torch.distributed.init_process_group("gloo")

import tsock  # noqa: E402

more = {"framework": "torch" if group else "numpy", "as_dict": True}
more["fields"] = ["index"]
if args.root:
    more.update(root=args.root, size=32, exit_when_idle=30)
loader = tsock.DataLoader("data", 7, wait=120, **more)
epochs = [
    [int(i) for batch in loader for i in batch["index"]]
    for _ in range(args.epochs)
]
loader.close()
said = {"epochs": epochs, "node": os.environ["TSOCK_DIR"]}
name = "%s.%s.json" % (args.seed, os.environ["SLURM_PROCID"])
with open(os.path.join(args.out, name), "w") as f:
    json.dump(said, f)
if group:
    torch.distributed.destroy_process_group()
