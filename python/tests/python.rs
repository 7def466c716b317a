//! Runs the tests of the package, which are in Python.
fn main() {}
