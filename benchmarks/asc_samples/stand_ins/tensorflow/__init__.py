"""Stands in for TensorFlow where a script only takes NumPy's bfloat16 from it."""

import ml_dtypes


class bfloat16:  # noqa: N801, the name that scripts use
    """The dtype as ``tf.bfloat16``; anything else of TensorFlow is missing on purpose."""

    as_numpy_dtype = ml_dtypes.bfloat16
