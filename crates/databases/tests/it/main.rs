//! Loads into servers that the tests start themselves.
