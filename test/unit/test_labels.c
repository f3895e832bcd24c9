/* SPDX-License-Identifier: MIT */
/*
 * test_labels.c - labels that a file has, and not the data set.
 */
#include "data/labels/labels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/format.h"
#include "data/index.h"
#include "test/lib/shard_fixture.h"
#include "test/lib/worker_fixture.h"

#define MOST 16 /* values of a label */

static char labels_path[96], select_path[96], classes_path[96];
static char given[1200];

static void write_beside(char to[96], const char *ending, const char *text)
{
	FILE *f;

	snprintf(to, 96, "%s.%s", worker_root, ending);
	f = fopen(to, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
	fclose(f);
}

/* The file, which is beside the data set, and how it is read. */
static void labels(const char *text, const char *how)
{
	write_beside(labels_path, "csv", text);
	snprintf(given, sizeof(given), "%s%s", labels_path, how);
}

/* An image, and the folders that it is in. */
static void put_image(const char *name)
{
	char path[200];

	for (const char *at = strchr(name, '/'); at; at = strchr(at + 1, '/')) {
		snprintf(path, sizeof(path), "%s/%.*s", worker_root,
			 (int)(at - name), name);
		mkdir(path, 0700);
	}
	worker_put_image(name);
}

static int make_images(void **state)
{
	if (worker_make_root(state))
		return -1;
	select_path[0] = classes_path[0] = '\0';
	put_image("0.png");
	put_image("1.png");
	put_image("x/2.png");
	put_image("x/3.PNG");
	return 0;
}

static int remove_all(void **state)
{
	unlink(labels_path);
	unlink(select_path);
	unlink(classes_path);
	return worker_remove_root(state);
}

static int open_with(struct tsi_index **x)
{
	struct tsi_index_opts o = { .format = &tsi_format_images,
				    .root = worker_root,
				    .labels = given,
				    .select = *select_path ? select_path : NULL,
				    .cache_dir = "",
				    .threads = 2 };

	return tsi_index_open(&o, x);
}

static struct tsi_index *open_labelled(void)
{
	struct tsi_index *x = NULL;

	if (open_with(&x))
		fail_msg("%s", tsock_errmsg());
	return x;
}

static void refuse(const char *text, const char *how, const char *what)
{
	struct tsi_index *x = NULL;

	labels(text, how);
	assert_true(open_with(&x) < 0);
	assert_null(x);
	if (!strstr(tsock_errmsg(), what))
		fail_msg("\"%s\" doesn't say \"%s\"", tsock_errmsg(), what);
}

/* The labels of the samples as numbers, and what they are. */
static void expect(const struct tsi_index *x, uint32_t dtype, unsigned len,
		   const double *want)
{
	const struct tsi_columns *c = tsi_index_columns(x);
	const struct tsock_field *f = tsi_columns_label(c);

	assert_non_null(f);
	assert_int_equal(f->dtype, dtype);
	assert_int_equal(f->ndim, len > 1);
	if (len > 1)
		assert_int_equal(f->shape[0], len);
	for (uint64_t i = 0; i < tsi_index_count(x); i++) {
		float vector[MOST];
		int64_t whole[MOST];

		tsi_columns_put_label(c, i,
				      dtype == TSOCK_I64 ? (void *)whole
							 : (void *)vector);
		for (unsigned k = 0; k < len; k++)
			if (dtype == TSOCK_I64)
				assert_int_equal(whole[k],
						 (int64_t)want[i * len + k]);
			else
				assert_true(vector[k] ==
					    (float)want[i * len + k]);
	}
}

static void expect_all(const char *text, const char *how, uint32_t dtype,
		       unsigned len, const double *want)
{
	struct tsi_index *x;

	labels(text, how);
	x = open_labelled();
	expect(x, dtype, len, want);
	tsi_index_close(x);
}

static void expect_text(const struct tsi_index *x, unsigned k, uint64_t i,
			const char *want)
{
	const struct tsi_columns *c = tsi_index_columns(x);
	char text[64];

	assert_int_equal(tsi_columns_field(c, k)->flags, TSOCK_FIELD_TEXT);
	assert_true(tsi_columns_field(c, k)->shape[0] <= sizeof(text));
	tsi_columns_put(c, k, i, text);
	assert_string_equal(text, want);
}

static const char *path_of(const struct tsi_index *x, uint64_t i)
{
	static char text[TSI_PATH];

	return tsi_index_path(x, i, text);
}

/* ---- classes ---- */

static void names_of_classes_are_numbered_in_their_order(void **state)
{
	struct tsi_index *x;

	(void)state;
	labels("file,label\n0.png,dog\n1.png,ant\nx/2.png,dog\nx/3.PNG,cat\n"
	       "elsewhere.png,bee\n",
	       "");
	x = open_labelled();
	expect(x, TSOCK_I64, 1, (double[]){ 3, 0, 3, 2 });
	assert_false(tsi_index_unlabelled(x));
	/* That of an image that isn't there counts. */
	assert_int_equal(tsi_index_classes(x), 4);
	assert_string_equal(tsi_index_class(x, 1), "bee");
	/* By which a substitute is found, too. */
	assert_int_equal(tsi_index_label(x, 0), 3);
	assert_int_equal(tsi_index_label(x, 3), 2);
	assert_string_equal(path_of(x, 3), "x/3.PNG");
	tsi_index_close(x);
}

static void numbers_of_classes_are_taken_as_they_are(void **state)
{
	(void)state;
	expect_all("ImageId;class\n0;7\n1;0\n2;7\n3;1\n", "", TSOCK_I64, 1,
		   (double[]){ 7, 0, 7, 1 });
	expect_all("0.png\t2\n1.png\t0\n2.png\t1\n3.PNG\t1\n", "", TSOCK_I64, 1,
		   (double[]){ 2, 0, 1, 1 });
	expect_all("./0.png 2\n1.png  0\nx/2.png 1 \r\n3.PNG 1", "", TSOCK_I64,
		   1, (double[]){ 2, 0, 1, 1 });
	/* These are none, but numbers. */
	expect_all("path,label\n0,-1\n1,5\n2,6\n3,7\n", "", TSOCK_I64, 1,
		   (double[]){ -1, 5, 6, 7 });
}

static void numbers_alone_are_in_the_order_of_the_names(void **state)
{
	(void)state;
	expect_all("5\n4\n\n3\n2\n", "", TSOCK_I64, 1,
		   (double[]){ 5, 4, 3, 2 });
	refuse("5\n4\n3\n", "",
	       "has 3 numbers without names, and the data set 4 images");
	refuse("5\nx\n", "", "line 2: 'x' is no number");
}

static void kaggle_and_tiny_imagenet_are_read_as_they_are(void **state)
{
	(void)state;
	expect_all("ImageId,PredictionString\n0,n2 1 2 3 4 n9 1 2 3 4\n"
		   "1,n1 5 6 7 8\n2,n1 1 1 1 1\n3,n3 1 1 1 1\n",
		   "", TSOCK_I64, 1, (double[]){ 1, 0, 0, 2 });
	expect_all("0.png\tn2\t0\t0\t62\t62\n1.png\tn1\t1\t1\t1\t1\n"
		   "2.png\tn1\t1\t1\t1\t1\n3.PNG\tn3\t1\t1\t1\t1\n",
		   "", TSOCK_I64, 1, (double[]){ 1, 0, 0, 2 });
}

static void several_classes_are_ones_in_a_vector(void **state)
{
	static const double want[] = { 1, 0, 1, /**/ 0, 0, 0,
				       0, 1, 0, /**/ 1, 1, 1 };
	struct tsi_index *x;

	(void)state;
	expect_all("image,tags\n0,a|c\n1,\n2,b\n3,c|b|a\n", "", TSOCK_F32, 3,
		   want);
	expect_all("image,tags\n0,a c\n1,\n2,b\n3,c  b a\n", "", TSOCK_F32, 3,
		   want);
	expect_all("image,x\n0,\"a, c\"\n1,\n2,b\n3,\"c,b,a\"\n",
		   ":label=x,as=classes", TSOCK_F32, 3, want);
	expect_all(
		"{\"id\": \"0\", \"tags\": [\"a\", \"c\"]}\n"
		"{\"id\": \"1\", \"tags\": []}\n"
		"{\"tags\": [\"b\"], \"id\": \"2\"}\n"
		"{\"id\": \"3\", \"tags\": [\"c\", \"b\", \"a\"], \"x\": 1}\n",
		"", TSOCK_F32, 3, want);
	expect_all("image,tags\n0,0|2\n1,\n2,1\n3,2|0|1\n", "", TSOCK_F32, 3,
		   want);
	x = open_labelled();
	assert_int_equal(tsi_index_classes(x), 3);
	assert_int_equal(tsi_index_label(x, 3), 2);
	tsi_index_close(x);
}

static void a_blank_or_a_comma_may_be_in_the_name_of_a_class(void **state)
{
	struct tsi_index *x;

	(void)state;
	labels("image,breed\n0,golden retriever\n1,\"a, b\"\n2,golden retriever"
	       "\n3,x\n",
	       "");
	x = open_labelled();
	expect(x, TSOCK_I64, 1, (double[]){ 1, 0, 1, 2 });
	assert_string_equal(tsi_index_class(x, 1), "golden retriever");
	tsi_index_close(x);
}

static void a_file_of_classes_numbers_them(void **state)
{
	char how[200];

	(void)state;
	write_beside(classes_path, "classes", "dog\nant\ngolden retriever\n");
	snprintf(how, sizeof(how), ":classes=%s", classes_path);
	expect_all("file,label\n0,dog\n1,ant\n2,dog\n3,golden retriever\n", how,
		   TSOCK_I64, 1, (double[]){ 0, 1, 0, 2 });
	refuse("file,label\n0,dog\n1,cat\n2,dog\n3,ant\n", how,
	       "line 3: the class cat isn't in ");
	refuse("file,label\n0,0\n1,3\n2,1\n3,1\n", how,
	       "line 3: the label 3 is no number of a class below 3");
	/* Relative to the labels' file. */
	snprintf(how, sizeof(how), ":classes=%s",
		 strrchr(classes_path, '/') + 1);
	expect_all("file,label\n0,dog\n1,ant\n2,dog\n3,ant\n", how, TSOCK_I64,
		   1, (double[]){ 0, 1, 0, 1 });
	/* As Kaggle's LOC_synset_mapping.txt: a name and what it means. */
	write_beside(classes_path, "classes", "n2 b, c\nn1 d\n");
	expect_all("file,label\n0,n1\n1,n1\n2,n2\n3,n1\n", how, TSOCK_I64, 1,
		   (double[]){ 1, 1, 0, 1 });
	write_beside(classes_path, "classes", "n2\nn1\nn2\n");
	refuse("file,label\n0,n1\n1,n1\n2,n2\n3,n1\n", how,
	       "names the class n2 twice");
}

/* The devkit's numbers aren't those of the sorted names. */
static void the_devkit_needs_its_own_numbers_of_classes(void **state)
{
	char how[200], path[1100];

	(void)state;
	write_beside(classes_path, "classes",
		     "n03 1 kit_fox\nn01 2 English_setter\nn02 3 x\n");
	snprintf(how, sizeof(how), ":classes=%s", classes_path);
	expect_all("1\n1\n3\n2\n", how, TSOCK_I64, 1, (double[]){ 2, 2, 1, 0 });
	refuse("1\n1\n3\n4\n", how, "line 4: the class 4 isn't in ");
	worker_put("ILSVRC2012_validation_ground_truth.txt", "1\n1\n3\n2\n", 8);
	snprintf(path, sizeof(path),
		 "%s/ILSVRC2012_validation_ground_truth.txt", worker_root);
	snprintf(given, sizeof(given), "%s", path);
	{
		struct tsi_index *x = NULL;

		assert_int_equal(open_with(&x), TSOCK_EDATA);
		assert_non_null(strstr(tsock_errmsg(), "map_clsloc.txt"));
	}
	assert_int_equal(unlink(path), 0);
}

/* ---- numbers and text ---- */

static void numbers_and_vectors_are_float32(void **state)
{
	static const double vector[] = { 1, 0.5, 2, -1, 0, 3, 4, 1e9 };
	static const double hot[] = { 1, 0, 0, 1, 0, 0, 1, 1 };

	(void)state;
	expect_all("path,target\n0,0.5\n1,-2\n2,1e3\n3,4\n", "", TSOCK_F32, 1,
		   (double[]){ 0.5, -2, 1000, 4 });
	expect_all("path,label\n0,1\n1,2\n2,3\n3,4\n", ":as=float", TSOCK_F32,
		   1, (double[]){ 1, 2, 3, 4 });
	expect_all("path,target\n0,1 0.5\n1,2 -1\n2,0 3\n3,4 1e9\n", "",
		   TSOCK_F32, 2, vector);
	expect_all("path,x,y\n0,1,0.5\n1,2,-1\n2,0,3\n3,4,1e9\n", ":label=x+y",
		   TSOCK_F32, 2, vector);
	expect_all("x,path,y\n1,0,0.5\n2,1,-1\n0,2,3\n4,3,1e9\n", ":label=*",
		   TSOCK_F32, 2, vector);
	expect_all("{\"path\":\"0\",\"m\":{\"v\":[1,0.5]}}\n"
		   "{\"path\":\"1\",\"m\":{\"v\":[2,-1]}}\n"
		   "{\"path\":\"2\",\"m\":{\"v\":[0,3]}}\n"
		   "{\"path\":\"3\",\"m\":{\"v\":[4,1e9],\"u\":{\"v\":9}}}\n",
		   ":label=m.v", TSOCK_F32, 2, vector);
	/* Each has as many, of 0 and 1: no lists of classes. */
	expect_all("path,label\n0,1 0\n1,0 1\n2,0 0\n3,1 1\n", "", TSOCK_F32, 2,
		   hot);
	refuse("path,target\n0,1 0.5\n1,2\n2,0 3\n3,4 1\n", ":as=float",
	       "line 3: it has 1 values, and others 2");
	refuse("path,target\n0,0.5\n1,1e99\n2,3\n3,4\n", "",
	       "line 3: '1e99' is no float32");
	refuse("path,label\n0,-1\n1,9223372036854775808\n2,3\n3,4\n", "",
	       "line 3: '9223372036854775808' is no whole number below 2^63");
	refuse("path,label\n0,1\n1,a\n2,3\n3,4\n", ":as=int",
	       "line 3: 'a' is no whole number");
}

#define LARGE 9007199254740991.0 /* 2^53 - 1: no float32 */

static void vectors_of_whole_numbers_are_int64_if_asked_for(void **state)
{
	static const double vector[] = { 1, -5, 2, LARGE, 0, 3, 4, 6 };

	(void)state;
	expect_all("{\"path\":\"0\",\"v\":[1,-5]}\n"
		   "{\"path\":\"1\",\"v\":[2,9007199254740991]}\n"
		   "{\"path\":\"2\",\"v\":[0,3]}\n"
		   "{\"path\":\"3\",\"v\":[4,6]}\n",
		   ":label=v,as=int", TSOCK_I64, 2, vector);
	expect_all("path,x,y\n0,1,-5\n1,2,9007199254740991\n2,0,3\n3,4,6\n",
		   ":label=x+y,as=int", TSOCK_I64, 2, vector);
	expect_all("path,v\n0,1|-5\n1,2|9007199254740991\n2,0|3\n3,4|6\n",
		   ":label=v,as=int", TSOCK_I64, 2, vector);
	/* What a column lacks. */
	expect_all("path,x,y,z\n0,1,2,3\n1,4,,6\n2,7,8,9\n3,1,1,2\n",
		   ":label=x+y+z,as=int", TSOCK_I64, 3,
		   (double[]){ 1, 2, 3, 4, -1, 6, 7, 8, 9, 1, 1, 2 });
	expect_all("{\"path\":\"0\",\"v\":[1,2]}\n"
		   "{\"path\":\"1\",\"v\":[]}\n"
		   "{\"path\":\"2\",\"v\":[3,4]}\n"
		   "{\"path\":\"3\",\"v\":[5,6]}\n",
		   ":label=v,as=int", TSOCK_I64, 2,
		   (double[]){ 1, 2, -1, -1, 3, 4, 5, 6 });
	refuse("path,v\n0,1 2\n1,3\n2,5 6\n3,7 8\n", ":label=v,as=int",
	       "line 3: it has 1 values, and others 2");
	refuse("path,v\n0,1 2\n1,3 0.5\n2,5 6\n3,7 8\n", ":label=v,as=int",
	       "line 3: '0.5' is no whole number");
	refuse("path,x,y\n0,1,2\n1,3,4\n2,5,6\n3,7,8\n", ":label=x+y,as=class",
	       "a vector of numbers: as=float or as=int");
}

/* Lists of a field: whole numbers stay what they are. */
static void vectors_are_fields(void **state)
{
	struct tsi_index *x;
	const struct tsi_columns *c;
	int64_t whole[2];
	float v[2];

	(void)state;
	labels("{\"path\":\"0\",\"label\":1,\"n\":[3,4],\"v\":[0.5,1],\"h\":[0,"
	       "1]}\n"
	       "{\"path\":\"1\",\"label\":1,\"n\":[5,6],\"v\":[2,1],\"h\":[1,1]"
	       "}\n"
	       "{\"path\":\"2\",\"label\":1,\"n\":[7,9007199254740991],"
	       "\"v\":[3,4],\"h\":[0,0]}\n"
	       "{\"path\":\"3\",\"label\":1,\"n\":[9,9],\"v\":[5,6],\"h\":[0,0]"
	       "}\n",
	       ":fields=n+v+h");
	x = open_labelled();
	c = tsi_index_columns(x);
	assert_int_equal(tsi_columns_field(c, 0)->dtype, TSOCK_I64);
	assert_int_equal(tsi_columns_field(c, 0)->shape[0], 2);
	tsi_columns_put(c, 0, 2, whole);
	assert_true(whole[0] == 7 && whole[1] == (int64_t)LARGE);
	assert_int_equal(tsi_columns_field(c, 1)->dtype, TSOCK_F32);
	tsi_columns_put(c, 1, 0, v);
	assert_true(v[0] == 0.5f && v[1] == 1);
	/* 0 and 1: which of something the sample has, as of labels. */
	assert_int_equal(tsi_columns_field(c, 2)->dtype, TSOCK_F32);
	tsi_columns_put(c, 2, 1, v);
	assert_true(v[0] == 1 && v[1] == 1);
	tsi_index_close(x);
}

static void further_columns_are_fields(void **state)
{
	struct tsi_index *x;
	const struct tsi_columns *c;
	int64_t number;
	float v;

	(void)state;
	labels("path,label,caption,age,w\n0,a,\"say \"\"hi\"\",\nthen\",3,0.5\n"
	       "1,b,,4,\n2,a,\xc3\xa9,5,1\n3,a,x,6,2\n",
	       ":fields=caption+age+w");
	x = open_labelled();
	c = tsi_index_columns(x);
	expect(x, TSOCK_I64, 1, (double[]){ 0, 1, 0, 0 });
	assert_int_equal(tsi_columns_count(c), 3);
	assert_string_equal(tsi_columns_field(c, 0)->name, "caption");
	expect_text(x, 0, 0, "say \"hi\",\nthen");
	expect_text(x, 0, 1, "");
	expect_text(x, 0, 2, "\xc3\xa9");
	assert_int_equal(tsi_columns_field(c, 1)->dtype, TSOCK_I64);
	tsi_columns_put(c, 1, 3, &number);
	assert_int_equal(number, 6);
	/* A number that isn't there. */
	assert_int_equal(tsi_columns_field(c, 2)->dtype, TSOCK_F32);
	tsi_columns_put(c, 2, 0, &v);
	assert_true(v == 0.5f);
	tsi_columns_put(c, 2, 1, &v);
	assert_true(isnan(v));
	tsi_index_close(x);
	refuse("path,label,box\n0,1,2\n", ":fields=box",
	       "a field can't be called box");
}

/* Captions are no classes: labels stay -1. */
static void captions_alone_are_a_field(void **state)
{
	struct tsi_index *x;

	(void)state;
	labels("{\"file_name\": \"0.png\", \"text\": "
	       "\"a\\u00e9\\ud83d\\ude00\"}\n"
	       "{\"file_name\": \"1.png\", \"text\": \"b\"}\n"
	       "{\"file_name\": \"2.png\", \"text\": null}\n"
	       "{\"file_name\": \"3.PNG\", \"text\": \"d\"}\n",
	       ":fields=text");
	x = open_labelled();
	assert_null(tsi_columns_label(tsi_index_columns(x)));
	assert_true(tsi_index_unlabelled(x));
	expect_text(x, 0, 0, "a\xc3\xa9\xf0\x9f\x98\x80");
	expect_text(x, 0, 2, "");
	tsi_index_close(x);
	labels("file_name,text\n0,a\n1,b\n2,c\n3,d\n", "");
	x = open_labelled();
	assert_null(tsi_columns_label(tsi_index_columns(x)));
	expect_text(x, 0, 3, "d");
	tsi_index_close(x);
}

/* ---- which sample ---- */

static void samples_are_found_by_path_or_by_an_unambiguous_name(void **state)
{
	const char *base = strrchr(worker_root, '/') + 1;
	char text[400];

	(void)state;
	put_image("y/2.png");
	/* Samples: 0 1 x/2 x/3 y/2. */
	snprintf(text, sizeof(text),
		 "path,label\n%s/0.png,4\n%s/1.png,3\nx/2.png,2\n"
		 "elsewhere/3,1\ny/2,0\n",
		 worker_root, base);
	expect_all(text, "", TSOCK_I64, 1, (double[]){ 4, 3, 2, 1, 0 });
	/* Other folders' images have that name, too. */
	refuse("path,label\n0,1\n1,1\n3,1\nx/2,1\nz/2.png,0\n", "",
	       "has no label for 1 of 5 images: y/2.png;");
	/* A sample's own name goes before another's last part. */
	expect_all("path,label\nz/0.png,9\n0.png,1\n1,2\nx/2,3\n3,4\ny/2,5\n",
		   "", TSOCK_I64, 1, (double[]){ 1, 2, 3, 4, 5 });
}

static void samples_without_a_label_are_named(void **state)
{
	struct tsi_index *x;

	(void)state;
	refuse("path,label\n1.png,a\n", "",
	       "has no label for 3 of 4 images: 0.png, x/2.png, x/3.PNG;");
	/* So are those whose label is empty. */
	refuse("path,label\n0,a\n1,\n2,a\n3,\n", "",
	       "has no label for 2 of 4 images: 1.png, x/3.PNG;");
	refuse("{\"id\":\"0\",\"label\":1}\n{\"id\":\"1\"}\n"
	       "{\"id\":\"2\",\"label\":null}\n{\"id\":\"3\",\"label\":2}\n",
	       "", "2 of 4 images: 1.png, x/2.png;");
	/* Those that aren't selected need none. */
	write_beside(select_path, "select", "x/3.PNG\n1.png\n");
	labels("path,label\n1.png,a\n3,b\n", "");
	x = open_labelled();
	assert_int_equal(tsi_index_count(x), 2);
	expect(x, TSOCK_I64, 1, (double[]){ 1, 0 });
	assert_int_equal(tsi_index_label(x, 0), 1);
	tsi_index_close(x);
	labels("7\n6\n5\n4\n", "");
	x = open_labelled();
	expect(x, TSOCK_I64, 1, (double[]){ 4, 6 });
	tsi_index_close(x);
}

static void two_labels_of_a_sample_are_an_error(void **state)
{
	(void)state;
	refuse("path,label\n0,a\n1,b\n0,b\n2,a\n3,a\n", "",
	       "line 4: 0 has another label in line 2");
	expect_all("path,label\n0,a\n1,b\n0,a\n2,a\n3,a\n", "", TSOCK_I64, 1,
		   (double[]){ 0, 1, 0, 0 });
}

static void side_files_are_labels(void **state)
{
	struct tsi_index *x = NULL;

	(void)state;
	worker_put("0.label", "dog\n", 4);
	worker_put("1.label", " ant\r\n", 6);
	worker_put("x/2.label", "dog", 3);
	snprintf(given, sizeof(given), "%s", worker_root);
	assert_int_equal(open_with(&x), TSOCK_EDATA);
	assert_non_null(
		strstr(tsock_errmsg(), "no label for 1 of 4 images: x/3.PNG"));
	worker_put("x/3.label", "c\ne", 3);
	assert_int_equal(open_with(&x), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "the label of x/3.PNG in "));
	worker_put("x/3.label", "c", 1);
	x = open_labelled();
	expect(x, TSOCK_I64, 1, (double[]){ 2, 0, 2, 1 });
	tsi_index_close(x);
	snprintf(given, sizeof(given), "%s:label=.txt", worker_root);
	x = NULL;
	assert_int_equal(open_with(&x), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "no file NAME.txt"));
}

static void put_shard(const char *name, char label, const char *text)
{
	struct tar_gen t = { 0 };

	shard_add(&t, "x/0.png");
	tar_gen_text(&t, "x/0.txt", text);
	tar_gen_text(&t, "x/0.seg.txt", "no text of it");
	tar_gen_text(&t, "x/0.cls", (char[]){ label, '\n', '\0' });
	shard_add(&t, "x/1.png");
	tar_gen_text(&t, "x/1.json", "{\"a\": {\"b\": [2, 3]}}");
	tar_gen_text(&t, "x/1.cls", "1");
	tar_gen_end(&t);
	shard_write_tar(&t, name);
}

static void files_in_tar_files_are_labels_and_fields(void **state)
{
	struct tsi_index_opts o = { .format = &tsi_format_webdataset_bare,
				    .root = worker_root,
				    .labels = given,
				    .cache_dir = "",
				    .threads = 2 };
	struct tsi_index *x = NULL;
	float v[2];

	(void)state;
	put_shard("0.tar", '3', " one\ntwo \n");
	put_shard("1.tar", '0', "three");
	snprintf(given, sizeof(given), "%s:label=.cls,fields=.txt+.json.a.b",
		 worker_root);
	if (tsi_index_open(&o, &x))
		fail_msg("%s", tsock_errmsg());
	expect(x, TSOCK_I64, 1, (double[]){ 3, 1, 0, 1 });
	assert_int_equal(tsi_index_classes(x), 4);
	expect_text(x, 0, 0, "one\ntwo");
	expect_text(x, 0, 1, "");
	expect_text(x, 0, 2, "three");
	assert_string_equal(tsi_columns_field(tsi_index_columns(x), 1)->name,
			    "b");
	tsi_columns_put(tsi_index_columns(x), 1, 3, v);
	assert_true(v[0] == 2 && v[1] == 3);
	tsi_index_close(x);
	x = NULL;
	snprintf(given, sizeof(given), "%s:label=.txt", worker_root);
	assert_int_equal(tsi_index_open(&o, &x), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "no label for 2 of 4 images"));
	snprintf(given, sizeof(given), "%s:label=txt", worker_root);
	assert_int_equal(tsi_index_open(&o, &x), TSOCK_EARG);
	snprintf(given, sizeof(given), "%s:label=.cls,fields=.json.c",
		 worker_root);
	assert_int_equal(tsi_index_open(&o, &x), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "no file NAME.json with c"));
}

/* ---- mistakes ---- */

static void mistakes_are_named_with_their_line(void **state)
{
	(void)state;
	refuse("", "", "has no rows");
	refuse("path,label\n", "", "has no rows");
	refuse("path,label\n0,\"a\n", "", "line 2: a quote has no end");
	refuse("path,label\n0,a\n1,\"a\"b\n", "", "line 3: text follows");
	refuse("path,label\n0,\"a\n\n\"\n1\n", "", "line 5: it has 1 column,");
	refuse("path,label\n0,a,b\n", "", "line 2: it has 3 columns");
	refuse("path,label\n,a\n", "", "line 2: it has no name");
	refuse("path,label\n0,a\n1,\xff\n", "", "line 3: it isn't UTF-8");
	refuse("path,label\n0,a\n1,\x01\n", "", "line 3: it has the byte 1");
	refuse("foo,bar\n0,a\n", "", "line 1: which column has the paths?");
	refuse("path,bar\n0,a\n", "", "line 1: which column has the labels?");
	refuse("path,label\n0,a\n", ":label=x", "no column x, but path, label");
	refuse("path,label\n0,\n", "", "has no label in any line");
	refuse("[{\"path\": 1}]\n", "", "is one JSON list");
	refuse("{\"path\": \"0\", \"label\": 1}\n{\"path\": \"1\"\n", "",
	       "line 2: the object has no end");
	refuse("{\"path\": \"0\", \"label\": 1}\n{\"path\": \"1\", \"label\": "
	       "[1, [2]]}\n",
	       "", "line 2: a list has more than numbers and texts");
	refuse("{\"path\": \"0\", \"label\": 1}\n\n7\n", "",
	       "line 3: it is no JSON object");
	refuse("{\"path\": \"0\", \"label\": \"\\u0000\"}\n", "",
	       "line 1: a text has a control character");
	refuse("{\"path\": \"0\", \"label\": 1}\n{\"label\": 2}\n", "",
	       "line 2: it has no name, \"path\"");
	refuse("path,label\n0,a\n", ":as=number",
	       "choose one of class|classes");
	refuse("path,label\n0,a\n", ":as=text,foo=1", "foo=1 is none of path,");
	refuse("path,label\n0,0.5\n", ":classes=/dev/null",
	       "classes= is for labels that are classes");
}

/* The file is a part of what was read. */
static void a_file_that_changes_is_seen(void **state)
{
	struct tsi_index *x;
	uint64_t before, now = 0;
	static const char text[] = "path,label\n0,a\n1,a\n2,b\n3,b\n";

	(void)state;
	labels(text, "");
	x = open_labelled();
	before = tsi_index_fingerprint(x);
	assert_true(tsi_index_look(x, &now));
	labels("path,label\n0,a\n1,b\n2,b\n3,b\n", "");
	assert_false(tsi_index_look(x, &now));
	tsi_index_close(x);
	x = open_labelled();
	assert_true(tsi_index_fingerprint(x) != before);
	tsi_index_close(x);
	/* Whatever the file is called. */
	labels(text, "");
	x = open_labelled();
	assert_true(tsi_index_fingerprint(x) == before);
	assert_true(tsi_labels_describe(given, &now) == 0);
	assert_true(now == tsi_index_labels_fingerprint(x));
	tsi_index_close(x);
}

/* Names of classes are those of the training set's folders. */
static void the_training_sets_folders_number_the_classes(void **state)
{
	struct tsi_index_opts o = { .format = &tsi_format_images,
				    .labels = given,
				    .cache_dir = "",
				    .threads = 2 };
	struct tsi_index *x = NULL;
	char root[128];

	(void)state;
	put_image("train/ant/0.png");
	put_image("train/bee/0.png");
	put_image("train/cat/0.png");
	put_image("val/0.png");
	put_image("val/1.png");
	snprintf(root, sizeof(root), "%s/val", worker_root);
	o.root = root;
	labels("path,label\n0,cat\n1,bee\n", "");
	if (tsi_index_open(&o, &x))
		fail_msg("%s", tsock_errmsg());
	expect(x, TSOCK_I64, 1, (double[]){ 2, 1 });
	assert_int_equal(tsi_index_classes(x), 3);
	tsi_index_close(x);
	labels("path,label\n0,cat\n1,bees\n", "");
	assert_int_equal(tsi_index_open(&o, &x), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(),
			       "line 3: the class bees is no folder of "));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_images, remove_all)
	const struct CMUnitTest tests[] = {
		TEST(names_of_classes_are_numbered_in_their_order),
		TEST(numbers_of_classes_are_taken_as_they_are),
		TEST(numbers_alone_are_in_the_order_of_the_names),
		TEST(kaggle_and_tiny_imagenet_are_read_as_they_are),
		TEST(several_classes_are_ones_in_a_vector),
		TEST(a_blank_or_a_comma_may_be_in_the_name_of_a_class),
		TEST(a_file_of_classes_numbers_them),
		TEST(the_devkit_needs_its_own_numbers_of_classes),
		TEST(numbers_and_vectors_are_float32),
		TEST(vectors_of_whole_numbers_are_int64_if_asked_for),
		TEST(vectors_are_fields),
		TEST(further_columns_are_fields),
		TEST(captions_alone_are_a_field),
		TEST(samples_are_found_by_path_or_by_an_unambiguous_name),
		TEST(samples_without_a_label_are_named),
		TEST(two_labels_of_a_sample_are_an_error),
		TEST(side_files_are_labels),
		TEST(files_in_tar_files_are_labels_and_fields),
		TEST(mistakes_are_named_with_their_line),
		TEST(a_file_that_changes_is_seen),
		TEST(the_training_sets_folders_number_the_classes),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
