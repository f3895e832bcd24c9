# SPDX-License-Identifier: MIT
"""Single operations for recipes.py, on pictures of 224 x 224 in memory.

Each line: its name, the recipe, what Pillow does (a function of a picture),
and the name of a function of cv2_ops() for OpenCV's, if that has the same.
Arguments are fixed, so that all do as much.
"""

SIZE = 224


def pillow_ops():
    """The operations, each with what torchvision calls of Pillow."""
    from PIL import ImageFilter
    from torchvision.transforms import InterpolationMode as Mode
    from torchvision.transforms import functional as f

    shear = [20.0, 0.0]

    def affine(mode):
        return lambda x: f.affine(x, 0.0, [0, 0], 1.0, shear, mode)

    def rotate(mode):
        return lambda x: f.rotate(x, 20.0, mode)

    def resize(edge, mode):
        return lambda x: f.resize(x, [edge, edge], mode)

    points = [[0, 0], [223, 0], [223, 223], [0, 223]]
    ends = [[20, 10], [200, 30], [210, 190], [5, 215]]
    return [
        ("flip", "RandomHorizontalFlip(1)", f.hflip),
        ("vertical flip", "RandomVerticalFlip(1)", f.vflip),
        ("pad 4", "Pad(4)", lambda x: f.pad(x, [4])),
        ("resize to 112", "Resize((112, 112))", resize(112, Mode.BILINEAR)),
        (
            "resize to 112, bicubic",
            "Resize((112, 112), interpolation=bicubic)",
            resize(112, Mode.BICUBIC),
        ),
        ("resize to 320", "Resize((320, 320))", resize(320, Mode.BILINEAR)),
        (
            "resize to 320, bicubic",
            "Resize((320, 320), interpolation=bicubic)",
            resize(320, Mode.BICUBIC),
        ),
        (
            "brightness",
            "ColorJitter(brightness=(1.3, 1.3))",
            lambda x: f.adjust_brightness(x, 1.3),
        ),
        (
            "contrast",
            "ColorJitter(contrast=(1.3, 1.3))",
            lambda x: f.adjust_contrast(x, 1.3),
        ),
        (
            "saturation",
            "ColorJitter(saturation=(1.3, 1.3))",
            lambda x: f.adjust_saturation(x, 1.3),
        ),
        (
            "hue",
            "ColorJitter(hue=(0.1, 0.1))",
            lambda x: f.adjust_hue(x, 0.1),
        ),
        (
            "sharpness",
            "RandomAdjustSharpness(1.9, p=1)",
            lambda x: f.adjust_sharpness(x, 1.9),
        ),
        ("grayscale", "Grayscale(3)", lambda x: f.rgb_to_grayscale(x, 3)),
        (
            "solarize",
            "RandomSolarize(128, p=1)",
            lambda x: f.solarize(x, 128),
        ),
        (
            "posterize",
            "RandomPosterize(4, p=1)",
            lambda x: f.posterize(x, 4),
        ),
        ("invert", "RandomInvert(p=1)", f.invert),
        ("autocontrast", "RandomAutocontrast(p=1)", f.autocontrast),
        ("equalize", "RandomEqualize(p=1)", f.equalize),
        (
            "Pillow's blur, radius 1",
            "PILGaussianBlur(1, (1, 1))",
            lambda x: x.filter(ImageFilter.GaussianBlur(1)),
        ),
        (
            "torchvision's blur, 23 taps",
            "GaussianBlur(23, (1, 1))",
            lambda x: f.gaussian_blur(x, [23, 23], [1.0, 1.0]),
        ),
        (
            "shear, nearest",
            "RandomAffine(0, shear=(20, 20))",
            affine(Mode.NEAREST),
        ),
        (
            "shear, bilinear",
            "RandomAffine(0, shear=(20, 20), interpolation=bilinear)",
            affine(Mode.BILINEAR),
        ),
        (
            "rotate, nearest",
            "RandomRotation((20, 20))",
            rotate(Mode.NEAREST),
        ),
        (
            "rotate, bilinear",
            "RandomRotation((20, 20), interpolation=bilinear)",
            rotate(Mode.BILINEAR),
        ),
        (
            "rotate, bicubic",
            "RandomRotation((20, 20), interpolation=bicubic)",
            rotate(Mode.BICUBIC),
        ),
        (
            "perspective, bilinear",
            "RandomPerspective(0.3, p=1)",
            lambda x: f.perspective(x, points, ends, Mode.BILINEAR),
        ),
    ]


def cv2_ops():
    """What OpenCV has of them, by name; its bytes are others."""
    import cv2
    import numpy as np

    cv2.setNumThreads(0)
    values = np.arange(256)
    tables = {
        "brightness": np.clip(values * 1.3, 0, 255),
        "solarize": np.where(values < 128, values, 255 - values),
        "posterize": values & 0xF0,
    }
    bend = np.float32([[1, 0.36, -40], [0, 1, 0]])
    turn = cv2.getRotationMatrix2D((111.5, 111.5), 20, 1)
    four = np.float32([[0, 0], [223, 0], [223, 223], [0, 223]])
    ends = np.float32([[20, 10], [200, 30], [210, 190], [5, 215]])
    seen = cv2.getPerspectiveTransform(four, ends)
    size = (SIZE, SIZE)

    def table(name):
        lut = tables[name].astype(np.uint8)
        return lambda x: cv2.LUT(x, lut)

    def affine(matrix, filter):
        return lambda x: cv2.warpAffine(x, matrix, size, flags=filter)

    def resize(edge, filter):
        return lambda x: cv2.resize(x, (edge, edge), interpolation=filter)

    def grayscale(x):
        return cv2.cvtColor(
            cv2.cvtColor(x, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB
        )

    def blend(other):
        return lambda x: cv2.addWeighted(x, 1.3, other(x), -0.3, 0)

    def contrast(x):
        mean = cv2.mean(cv2.cvtColor(x, cv2.COLOR_RGB2GRAY))[0]
        return cv2.convertScaleAbs(x, alpha=1.3, beta=-0.3 * mean)

    def hue(x):
        hsv = cv2.cvtColor(x, cv2.COLOR_RGB2HSV_FULL)
        hsv[..., 0] += 25
        return cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB_FULL)

    def equalize(x):
        return cv2.merge([cv2.equalizeHist(c) for c in cv2.split(x)])

    return {
        "flip": lambda x: cv2.flip(x, 1),
        "vertical flip": lambda x: cv2.flip(x, 0),
        "pad 4": lambda x: cv2.copyMakeBorder(
            x, 4, 4, 4, 4, cv2.BORDER_CONSTANT
        ),
        "resize to 112": resize(112, cv2.INTER_AREA),
        "resize to 320": resize(320, cv2.INTER_LINEAR),
        "resize to 320, bicubic": resize(320, cv2.INTER_CUBIC),
        "brightness": table("brightness"),
        "contrast": contrast,
        "saturation": blend(grayscale),
        "hue": hue,
        "grayscale": grayscale,
        "solarize": table("solarize"),
        "posterize": table("posterize"),
        "invert": cv2.bitwise_not,
        "equalize": equalize,
        "torchvision's blur, 23 taps": lambda x: cv2.GaussianBlur(
            x, (23, 23), 1.0
        ),
        "shear, nearest": affine(bend, cv2.INTER_NEAREST),
        "shear, bilinear": affine(bend, cv2.INTER_LINEAR),
        "rotate, nearest": affine(turn, cv2.INTER_NEAREST),
        "rotate, bilinear": affine(turn, cv2.INTER_LINEAR),
        "rotate, bicubic": affine(turn, cv2.INTER_CUBIC),
        "perspective, bilinear": lambda x: cv2.warpPerspective(
            x, seen, size, flags=cv2.INTER_LINEAR
        ),
    }
