//! Inputs that are cut, changed or broken.
