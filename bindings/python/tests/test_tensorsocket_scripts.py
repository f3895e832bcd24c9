# SPDX-License-Identifier: MIT
"""Scripts of TensorSocket's run with their import line replaced."""

import pytest

import tsock
from conftest import finish, until

pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("warm")


def here(text):
    """The only line of such a script that is another one."""
    assert text.count("from tensorsocket") == 1
    return text.replace("from tensorsocket", "from tsock.tensorsocket")


# As its README has them; what is "..." there is filled in.
README_PRODUCER = """
import sys
import torch
from torch.utils.data import DataLoader, TensorDataset
from tensorsocket import TensorProducer

epochs = 2
dataset = TensorDataset(
    torch.arange(103.0).repeat(4, 1).t().contiguous(), torch.arange(103)
)

# producer.py
data_loader = DataLoader(dataset)

producer = TensorProducer(data_loader)

for _ in range(epochs):
        for _ in producer:
            pass
producer.join()
print("joined")
"""

README_CONSUMER = """
import torch
from tensorsocket import TensorConsumer

use_shared_loader = True
model = torch.nn.Linear(4, 2)

# consumer.py (or train.py)
if not use_shared_loader:
    data_loader = create_loader()
else:
    data_loader = TensorConsumer()

for epoch in range(2):
    seen = []
    for batch_idx, (input, target) in enumerate(data_loader):
        output = model(input)
        assert (input[:, 0] == target).all()
        seen += target.tolist()
    assert seen == list(range(103)), seen
    print(epoch, data_loader.epoch, batch_idx + 1, len(data_loader))
"""


# What a script needs is imported, and it begins when argv[1] is there: however
# long that takes, a consumer waits for a minute alone.
WAITING = """
import os, sys, time
import tsock.tensorsocket, torch

print("ready", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
"""


def test_its_readmes_scripts(place, script):
    producer = script(here(README_PRODUCER), CUDA_VISIBLE_DEVICES="")
    until(tsock.streams)
    consumer = script(here(README_CONSUMER), CUDA_VISIBLE_DEVICES="")
    assert finish(consumer)[0] == "0 1 2 2\n1 2 2 2\n"
    assert finish(producer)[0] == "joined\n"


def test_a_consumer_may_be_there_before_the_producer(
    place, script, tmp_path
):
    go = tmp_path / "go"
    text = WAITING + here(README_PRODUCER)
    producer = script(text, go, CUDA_VISIBLE_DEVICES="")
    assert producer.stdout.readline() == "ready\n"
    consumer = script(here(README_CONSUMER), CUDA_VISIBLE_DEVICES="")
    assert "waiting for producer" in consumer.stderr.readline()
    go.touch()
    assert finish(consumer)[0] == "0 1 2 2\n1 2 2 2\n"
    finish(producer)


# As its examples are: ports as strings, loaders that go on for ever.
EXAMPLE_PRODUCER = """
import torch
from tensorsocket import TensorProducer

class DummyLoader:
    def __init__(self, length=40):
        self.length = length
        self.id = 0
        self.batch_size = 8
    def __len__(self):
        return self.length
    def __iter__(self):
        return self
    def __next__(self):
        a = self.id * torch.ones((self.batch_size, 10, 20))
        b = self.id * torch.ones((self.batch_size,))
        self.id += 1
        return a, b

producer = TensorProducer(DummyLoader(), "5556", "5557", rubber_band_pct=0.02)
for epoch in range(3):
    for i, _ in enumerate(producer):
        if not i % 10:
            print(epoch, i, producer.epoch)
producer.join()
print("finished")
"""

EXAMPLE_CONSUMER = """
import torch
from tensorsocket import TensorConsumer

consumer = TensorConsumer("5556", "5557", batch_size=16)
for epoch in range(3):
    for i, batch in enumerate(consumer):
        inputs, labels = batch
        assert type(batch) is tuple and inputs.shape == (16, 10, 20)
        first = 40 * epoch + 2 * i
        assert labels.tolist() == [first] * 8 + [first + 1] * 8
        assert (inputs == labels[:, None, None]).all()
    assert i == 19 == len(consumer) - 1
    print(consumer.epoch)
"""


def test_its_examples(place, script):
    producer = script(here(EXAMPLE_PRODUCER), CUDA_VISIBLE_DEVICES="")
    until(tsock.streams)
    consumer = script(here(EXAMPLE_CONSUMER), CUDA_VISIBLE_DEVICES="")
    out, err = finish(consumer)
    assert out == "1\n2\n3\n" and "ack_port='5557': no port is opened" in err
    out, err = finish(producer)
    steps = ["%d %d %d" % (e, i, e) for e in range(3) for i in (0, 10, 20, 30)]
    assert out.split("\n") == steps + ["finished", ""]
    assert "named by port" in err


def test_nothing_of_it_opens_a_port_or_changes_logging(place, script):
    process = script(
        "import logging\n"
        "import tsock.tensorsocket\n"
        "import torch\n"
        "p = tsock.tensorsocket.TensorProducer([torch.zeros(4, 2)])\n"
        "print(logging.root.handlers, logging.root.level)\n"
        "import os\n"
        "ports = {l.split()[1] for n in ('tcp', 'tcp6')\n"
        "         for l in open('/proc/net/' + n).readlines()[1:]}\n"
        "links = []\n"
        "for f in os.listdir('/proc/self/fd'):\n"
        "    try:\n"
        "        links.append(os.readlink('/proc/self/fd/' + f))\n"
        "    except FileNotFoundError:\n"
        "        pass  # it was closed just then\n"
        "nodes = {l.split()[9] for n in ('tcp', 'tcp6')\n"
        "         for l in open('/proc/net/' + n).readlines()[1:]}\n"
        "print([l for l in links if l[8:-1] in nodes])\n"
        "p.close()\n"
    )
    assert finish(process)[0] == "[] 30\n[]\n"
