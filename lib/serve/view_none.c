/* SPDX-License-Identifier: MIT */
/*
 * view_none.c - what stands for views on GPUs in a build without CUDA.
 *
 * There are none: tsi_gpu_table_find() finds no GPU to plan one for.
 */
#include "serve/view_broadcast.h"
#include "serve/view_neighbour.h"

void tsi_view_neighbour_find(struct tsi_view *v)
{
	(void)v;
}

void tsi_view_broadcast_serve(struct tsi_view *v)
{
	(void)v;
}

bool tsi_view_broadcast_end(struct tsi_view *v)
{
	(void)v;
	return true;
}
