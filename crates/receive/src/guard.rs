//! What is told when a job panics.

/// Runs something unless it is disarmed: when a job panics.
pub struct Guard<F: FnMut()>(Option<F>);

impl<F: FnMut()> Guard<F> {
    /// A guard that is armed.
    pub fn new(run: F) -> Self {
        Guard(Some(run))
    }

    /// The job has ended well.
    pub fn disarm(mut self) {
        self.0 = None;
    }
}

impl<F: FnMut()> Drop for Guard<F> {
    fn drop(&mut self) {
        if let Some(run) = &mut self.0 {
            run();
        }
    }
}
