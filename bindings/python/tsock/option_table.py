# SPDX-License-Identifier: MIT
"""The options of tsock-producer: from options.def by `make generate`."""

from __future__ import annotations

import os
from typing import Any, Literal, TypedDict, Union

Path = Union[str, os.PathLike[str]]
Size = Union[int, str]  # bytes, or "4G"
Transform = Union[str, Any]  # a recipe's text, or torchvision's transforms


class ProducerOptions(TypedDict, total=False):
    """The options of tsock-producer as keywords: seed=3 is --seed 3.

    A hyphen is an underscore here, as in cache_dir=.  True gives an option
    that has no value; None is as if it wasn't there.  Defaults are in
    brackets.

    Data set:
    dataset       imagenet: DIR/train and DIR/val, a folder per class in each;
                  imagefolder: DIR itself, or DIR/SPLIT with --split; images:
                  DIR's images at any depth, without classes; webdataset: the
                  tar files of DIR, or DIR/train-{000..146}.tar; images with
                  .cls or .json beside them; table: a file that tsock.index()
                  wrote: images by their ranges in files of any kind, labels
                  and fields of any kind; arrow: such a file, of Arrow files;
                  tsock.DataLoader writes it of a folder that save_to_disk()
                  wrote; parquet: likewise, of Parquet files, as on Hugging
                  Face's Hub; cifar10: the folder of CIFAR-10's files, Python's
                  or the binary ones; cifar100: the folder of CIFAR-100's
                  files, likewise; mnist: the folder of MNIST's or
                  Fashion-MNIST's files, unpacked; imagenet32: the folder of
                  downsampled ImageNet's batches, 32 x 32 pixels, pickled or
                  .npz; imagenet64: likewise, 64 x 64; npy: a .npy or .npz
                  file, or the folder of such files: NumPy's arrays, whose
                  first dimension is the samples'; records: a file of binary
                  records of one size, or the folder of such files; --schema
                  says what is in them; audio: the audio files of DIR, a folder
                  per class, or none and any depth; --schema says how long a
                  sample is; tokens: a .bin file of tokens, as nanoGPT, llm.c
                  and Megatron-LM write it, or the folder of such files;
                  --schema says how many a sample has; packed: what tsock-pack
                  wrote to DIR; the others find it there too
    root          where the data set is; without --dataset, what lies there
                  tells its kind
    split         which part: the folder of that name (imagenet: train), or the
                  one called training, or valid, validation or test
    schema        how a sample lies in its file: of tokens their dtype and how
                  many a sample has, as uint16[1024]; of records the fields of
                  one, as label:int32,dense:int32[13],category:int32[26]; of
                  audio channels and frames, as float32[1,59049], and behind @
                  the sample rate that all are resampled to, if any:
                  float32[1,59049]@22050
    documents     what the bounds of documents are to samples of tokens;
                  ignore: nothing (default); mark: the field document has of
                  each token which of the sample's documents it is of, from 0
                  on; whole: a sample is a document, or a piece of one that is
                  longer than --schema says; pack: a sample is as many
                  documents, one behind the other, as there is room for, with
                  the field document, which is -1 behind them
    end_token     of --documents: the token at the end of each, as 50256, where
                  no .idx of Megatron-LM says where they begin, or in its stead
    begin_token   likewise the token at the beginning of each, as 50256 in the
                  files that llm.c makes
    clips         what a sample of audio has of its file; crop: as many frames
                  as --schema says (default); whole: all, which are as many at
                  most, else the file is bad; a batch is as long as its longest
                  sample, and the field audio_length says how many frames each
                  has; cut: likewise, but of a longer file a crop
    select        serve the samples alone that it names, one a line: the path
                  of a file below the root, or the name in a tar file; behind
                  it, if wanted, a tab and a weight, for the field weight
    labels        the labels of images: a CSV or TSV file, JSON lines, lines of
                  a name, a blank and a label, lines of numbers in the order of
                  the names, or a folder with NAME.label for each image;
                  FILE:label=COLUMN,as=KIND and further words say how to read
                  it, where it doesn't show
    masks         where the masks are, for segmentation: that of a/b/NAME.jpg
                  is the PNG a/b/NAME.png in DIR, with a class in each pixel,
                  and the field mask has it, with the geometry of its image;
                  that of KEY.jpg in tar files is KEY.seg.png in those of DIR;
                  --root may be any folder of images then (--dataset images)
    boxes         the column of a table that has the bounding boxes of each
                  image, as left, top, right, bottom in its pixels, and columns
                  that go with it, as the boxes' labels: boxes get the geometry
                  of their image, are cut off at its edges, and leave if less
                  than a pixel is left
    keys          say of each sample what it is called, in the field key: the
                  path of its file below the root, or its key in a tar file,
                  1023 bytes at most
    grows         look all the time whether files are added or removed, and
                  serve the data set as it is then from the next epoch on that
                  isn't begun
    seed          of the order and the augmentation (0)
    order         philox: a new uniform shuffle per epoch (the default of
                  train); torch: the order that PyTorch's DataLoader would
                  visit; sequential: the data set's own (the default of eval)
    sampler       which samples an epoch has (each once): as many, drawn with
                  replacement by the weights of --select or of a table's column
                  weight, or so that all classes come as often; each K times in
                  a row, with draws of its own; or the first N of the order;
                  weighted,limit:N draws N
    segments      cut epochs into N parts at which a consumer may begin one (1;
                  sequential: 64, or the data set's size if smaller)
    shard         serve the part of the ranks A to B (from 0) of WORLD, or of
                  one rank, as 0/4: position p of an epoch's order is rank p
                  mod WORLD's, and the order's first samples fill up the last
                  row, as with DistributedSampler; evaluation leaves these out
    start         of --shard: begin at that position of the whole order of an
                  epoch, and deal the rest of it to the ranks anew; for a job
                  that goes on with another number of ranks
    allow_empty   a class without images is no error: it keeps its label
    rescan        scan the data set again
    cache_dir     keep the scan of the data set and the index of its JPEGs
                  there ($XDG_CACHE_HOME/tsock, else ~/.cache/tsock)
    no_cache      keep no scan and no index on disk, and use none
    shard_cache   copy shards (tar files, packs, and other files of many
                  samples) from a slow file system to this local folder, whole
                  and in the background, and read the copies, also in later
                  runs
    shard_cache_size
                  most that the copies of --shard-cache may take; those that
                  weren't used for longest make place (what the disk has free
                  but 5 % of the disk)
    on_error      a bad file: put a good one of its class in its place and
                  count it (default), or stop the stream, naming it
    allow_bad     serve a data set of which more can't be read, from 0 to 1
                  (0.01), or a class of which nothing can be: else that is an
                  error at the start, and a warning in every job if it is found
                  later

    Images:
    transform     what is done to each image, in the words of torchvision's
                  transforms: "RandomResizedCrop(224) RandomHorizontalFlip()";
                  @FILE: the text of a file; help lists what there is
    views         images of each file, with draws of their own, decoded once:
                  the fields image, image2, ..., or crops of audio: audio,
                  audio2, ...; for views that differ see Views in --transform
                  help (1)
    preset        train: random resized crop and flip (default); eval: resize
                  and centre crop (default of --split val); torchvision:
                  torchvision's first recipe: that of train, normalised;
                  torchvision-v2: that of torchvision's newer weights (with
                  --size 176 theirs); timm: the default of timm's train.py;
                  timm-rand: DeiT's: timm's --aa rand-m9-mstd0.5-inc1, bicubic,
                  --reprob 0.25 --remode pixel; simclr: SimCLR's two views;
                  dino: DINO's two global views and eight local ones of 96 x
                  96; cifar: crops of 32 x 32 pixels in a border of 4;
                  segmentation: torchvision's for images with masks;
                  segmentation-eval: short edge 520, and its middle
    size          side of the finished image (224)
    resize        eval: the shorter side before the crop (256)
    pillow        whose pixels to give: Pillow 13 and later resize some crops
                  in another order than 12 and before, with differences of one
                  level (13)
    fast          JPEG with fewer computations and other pixels than Pillow's:
                  chroma is repeated instead of interpolated, and what is
                  shrunk to half or less is decoded at 1/2, 1/4 or 1/8 of its
                  size

    Stream:
    ring          what is held in memory: a number of samples, more if the next
                  two need it; or, as 2G, what each ring may take, also one of
                  float32 (2048 samples, or two to three epochs of a smaller
                  set, but at most 1G)
    max_batch     largest batch that a consumer may ask for (512, or what a
                  ring of large images has room for)
    least_batch   without --max-batch: the largest batch is at least this one,
                  whatever the ring then takes
    join_window   so far into an epoch late joiners still get all of it (half
                  the ring)
    memory        most that all rings may take, e.g. 4G (what there is)
    image_memory  most that large images may take while they are decoded; one
                  that alone needs more is bad (2G, but at most --memory and
                  half of what there is)
    index_memory  for where the rows of JPEG files begin, so that crops are
                  decoded from there on in later epochs (4G, but at most a
                  sixteenth of what there is)
    no_index      decode every JPEG file from its beginning
    cache         keep so much of JPEG images in memory, packed, about twice as
                  large as the files: later epochs take a fraction of the time
                  (none)
    slow          a consumer that holds others up: wait for it (default), or,
                  after SEC seconds, go on without it, so that it misses
                  samples, or kill it
    min_consumers decode nothing before so many have joined (1), unless readers
                  of the producer before go on with this one
    epochs        end the stream after N epochs (0: never)
    exit_when_idle
                  exit when no consumer read, and no loader was connected, for
                  SEC seconds; before the first reader, for two minutes at
                  least

    Machine:
    threads       that decode (auto: as many as affinity and quota allow CPUs,
                  shared with your other streams here while they have readers)
    numa_node     have threads and memory on this NUMA node (any): on that of
                  the GPUs or the disks, for example
    io            how files are read (auto: io_uring where the kernel lets us)
    direct        read files past the page cache (O_DIRECT), so that they push
                  nothing else out of it; every epoch reads them from the disk

    GPUs:
    gpu_memory    most that the rings on one GPU may take (any)
    fanout        how samples reach a GPU when another one has them: from that
                  one, by a broadcast, or from host memory (auto: the faster of
                  the first and the last)
    gpu_transport how consumers open GPU memory; staged: they copy from host
                  memory themselves (auto: the first that works)

    Messages:
    quiet         errors alone, and no live line
    log_level     how much is said (info)
    """

    dataset: Literal["imagenet", "imagefolder", "images", "webdataset", "table", "arrow", "parquet", "cifar10", "cifar100", "mnist", "imagenet32", "imagenet64", "npy", "records", "audio", "tokens", "packed"]
    root: Path
    split: Literal["train", "val"]
    schema: str
    documents: Literal["ignore", "mark", "whole", "pack"]
    end_token: int
    begin_token: int
    clips: Literal["crop", "whole", "cut"]
    select: Path
    labels: Path
    masks: Path
    boxes: str
    keys: bool
    grows: bool
    seed: int
    order: Literal["philox", "torch", "sequential"]
    sampler: str
    segments: int
    shard: Union[str, tuple[int, int]]
    start: str
    allow_empty: bool
    rescan: bool
    cache_dir: Path
    no_cache: bool
    shard_cache: Path
    shard_cache_size: Size
    on_error: Literal["substitute", "raise"]
    allow_bad: float
    transform: Transform
    views: int
    preset: Literal["train", "eval", "torchvision", "torchvision-v2", "timm", "timm-rand", "simclr", "dino", "cifar", "segmentation", "segmentation-eval"]
    size: int
    resize: int
    pillow: int
    fast: bool
    ring: Size
    max_batch: int
    least_batch: int
    join_window: int
    memory: Size
    image_memory: Size
    index_memory: Size
    no_index: bool
    cache: Size
    slow: str
    min_consumers: int
    epochs: int
    exit_when_idle: float
    threads: Union[int, Literal["auto"]]
    numa_node: int
    io: Literal["auto", "uring", "pread"]
    direct: bool
    gpu_memory: Size
    fanout: Literal["auto", "peer", "nccl", "host"]
    gpu_transport: Literal["auto", "vmm", "legacy", "staged"]
    quiet: bool
    log_level: Literal["error", "warn", "info", "debug"]
