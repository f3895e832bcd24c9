/* SPDX-License-Identifier: MIT */
/*
 * guess.c - the format of a folder, by what is in it.
 */
#include "cli/guess.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "cli/split.h"
#include "data/columnar/file.h"
#include "data/contents.h"
#include "data/folder.h"
#include "data/packed/pack.h"

static bool has_split(const char *root, enum tsi_split split)
{
	char *folder = tsi_split_folder(root, split);
	struct stat st;
	bool there = folder && !stat(folder, &st) && S_ISDIR(st.st_mode);

	free(folder);
	return there;
}

static bool is_tar(const char *name)
{
	size_t len = strlen(name);

	return len >= 4 && !strcasecmp(name + len - 4, ".tar");
}

/* Tar files in a folder, and neither folders of classes nor images. */
static bool has_shards(const char *root)
{
	DIR *d = opendir(root);
	bool shards = false;
	struct dirent *e;

	if (!d)
		return false;
	while ((e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (tsi_folder_is_image(e->d_name) || tsi_folder_entry(d, e)) {
			shards = false;
			break;
		}
		shards = shards || is_tar(e->d_name);
	}
	closedir(d);
	return shards;
}

static bool has_one(const char *root, const char *names)
{
	bool there = false;
	struct stat st;
	char path[4096];

	while (!there && *names) {
		size_t n = strcspn(names, "|");

		there = snprintf(path, sizeof(path), "%s/%.*s", root, (int)n,
				 names) < (int)sizeof(path) &&
			!stat(path, &st);
		names += n + (names[n] == '|');
	}
	return there;
}

static bool ends(const char *name, const char *end)
{
	size_t len = strlen(name), n = strlen(end);

	return len >= n && !strcasecmp(name + len - n, end);
}

static bool is_array(const char *name)
{
	return ends(name, ".npy") || ends(name, ".npz");
}

static bool is_arrow(const char *name)
{
	return ends(name, ".arrow");
}

static bool is_parquet(const char *name)
{
	return ends(name, ".parquet");
}

/* Such files, and no folders; if they have to be alone, no images either. */
static bool has_files(const char *root, bool (*is)(const char *name),
		      bool alone)
{
	DIR *d = opendir(root);
	bool there = false;
	struct dirent *e;

	if (!d)
		return false;
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		if ((alone && tsi_folder_is_image(e->d_name)) ||
		    tsi_folder_entry(d, e)) {
			there = false;
			break;
		}
		there = there || is(e->d_name);
	}
	closedir(d);
	return there;
}

/* Audio files, and no images: in the folder, or in the first one there. */
static bool has_audio(const char *root)
{
	int audio = tsi_contents_kind(TSI_CONTENTS_AUDIO);
	struct tsi_contents c;

	return tsi_contents_look(AT_FDCWD, root, 2, &c) && c.of[audio].count &&
	       !c.images;
}

/* Sets whose files have names of their own; NULL: it is none of them. */
static const struct tsi_format *guess_set(const char *root)
{
	const char *base;

	if (has_one(root, "cifar-10-batches-py|cifar-10-batches-bin|"
			  "batches.meta|batches.meta.txt"))
		return &tsi_format_cifar10;
	if (has_one(root, "cifar-100-python|cifar-100-binary|"
			  "fine_label_names.txt"))
		return &tsi_format_cifar100;
	if (has_one(root, "train-images-idx3-ubyte|raw/train-images-idx3-ubyte|"
			  "MNIST/raw/train-images-idx3-ubyte|"
			  "FashionMNIST/raw/train-images-idx3-ubyte|"
			  "KMNIST/raw/train-images-idx3-ubyte"))
		return &tsi_format_mnist;
	if (!has_one(root, "train_data_batch_1|train_data_batch_1.npz"))
		return NULL;
	/* The last part of the path, behind which '/' may stand. */
	base = root + strlen(root);
	while (base > root && base[-1] == '/')
		base--;
	while (base > root && base[-1] != '/')
		base--;
	return strstr(base, "32") ? &tsi_format_imagenet32
				  : &tsi_format_imagenet64;
}

const struct tsi_format *tsi_guess_format(const char *root)
{
	const struct tsi_format *set;

	/* datasets.DatasetDict.save_to_disk(): a folder per split, too. */
	if (has_one(root, "dataset_dict.json"))
		return &tsi_format_arrow;
	if (has_split(root, TSI_SPLIT_TRAIN) && has_split(root, TSI_SPLIT_VAL))
		return &tsi_format_imagenet;
	if (tsi_pack_is_at(root))
		return &tsi_format_packed;
	if (tsi_columnar_is_at(root))
		return &tsi_format_table;
	if (is_tar(root) || has_shards(root))
		return &tsi_format_webdataset;
	set = guess_set(root);
	if (set)
		return set;
	if (is_array(root) || has_files(root, is_array, false))
		return &tsi_format_npy;
	if (is_parquet(root) || has_files(root, is_parquet, true))
		return &tsi_format_parquet;
	if (is_arrow(root) || has_files(root, is_arrow, true))
		return &tsi_format_arrow;
	return has_audio(root) ? &tsi_format_audio : &tsi_format_imagefolder;
}
