//! What has to be done at the end of a piece of work, however it ends.

/// Does something when it is dropped, also when a panic drops it: threads that wait for this one are told so.
#[derive(Debug)]
pub struct AtEnd<F: FnMut()>(F);

impl<F: FnMut()> AtEnd<F> {
    /// Does `end` when this is dropped.
    pub fn new(end: F) -> Self {
        AtEnd(end)
    }
}

impl<F: FnMut()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
