/* SPDX-License-Identifier: MIT */
/*
 * warp_map.h - the maps of torchvision's and timm's operations, for warp.h.
 */
#ifndef TSI_OPS_WARP_MAP_H
#define TSI_OPS_WARP_MAP_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Image.rotate's map and, with expand, the size of the new picture;
 * 0 <= degrees < 360.  centre NULL: the middle.
 */
void tsi_warp_map_rotation(double degrees, const double *centre, bool expand,
			   uint32_t *width, uint32_t *height, double m[6]);

/* The arguments of torchvision's F.affine. */
struct tsi_warp_affinity {
	double degrees; /* clockwise */
	double translate[2];
	double scale;
	double shear[2]; /* degrees */
	double centre[2];
};

/* torchvision's _get_inverse_affine_matrix(). */
void tsi_warp_map_affine(const struct tsi_warp_affinity *a, double m[6]);

/*
 * As in the policies of torchvision: ShearX, ShearY go through degrees and the
 * tangent and have the picture's corner for their centre; translations are
 * whole pixels, and keep the picture's middle for their centre.
 */
void tsi_warp_map_shear_x(double magnitude, double m[6]);
void tsi_warp_map_shear_y(double magnitude, double m[6]);
void tsi_warp_map_translate(uint32_t width, uint32_t height, double x, double y,
			    double m[6]);

/* As in those of timm: the numbers as they are, also parts of pixels. */
void tsi_warp_map_plain_shear(double x, double y, double m[6]);
void tsi_warp_map_plain_translate(double x, double y, double m[6]);

/* A corner, x and y. */
typedef double tsi_warp_point[2];

/*
 * torchvision's _get_perspective_coeffs(): the map that shows the old picture's
 * points `start` at `end`.  The eight equations are solved by elimination in
 * double, and the solution is rounded to float, as there.  torchvision's
 * solver may return numbers near 1e-17 where the solution is 0, which this one
 * does not: 3 bytes in 10^8 differed by 1 because of that, and many where the
 * points stay as they are, which is no change at all here.  False: three of the
 * points lie in a line, and there is no such map.
 */
bool tsi_warp_map_perspective(const tsi_warp_point start[4],
			      const tsi_warp_point end[4], double m[8]);

#endif
