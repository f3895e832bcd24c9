# SPDX-License-Identifier: MIT
"""tsock.share: the loader that a script has, for all jobs on the machine.

plan        what a loader becomes: its parts, and a stream's options
datasets    data sets that tsock-producer reads itself
recipes     transforms, and the recipes that they are
orders      samplers, and the orders that they are
tensors     steps that do something else on tensors than on images
trial       functions of the script's that apply a transform
webdataset  pipelines of the webdataset package, all parts of them
stages      the stages of such a pipeline
shards      the tar files of such a pipeline, as a root
cuts        the batches of what a sampler gives, and of which rank they are
collates    functions that make a batch of samples
generators  random numbers, of which looking takes none
look        all parts of a loader, one after the other
tables      the table of samples that are in no folder of their own
verify      the first samples, compared with the script's own
native      the loader of a stream that tsock-producer makes
parcel      a loader that is sent to another process
served      the loader of a stream that such a process serves
host        that process's program
inside      loaders round a loader of torch
hooks       objects of frameworks whose methods make loaders
seen        what a loader was, so that a change is noticed
patch       torch's DataLoader, in a script that tsock.run runs
spawned     the ranks that such a script starts
explain     the table of parts, with what they cost
share       which of them a script gets
"""

from .explain import explain
from .share import share

__all__ = ["explain", "share"]
