//! Fragments that come as text: parsed on the threads of loads, and told about.

use std::sync::Arc;
use std::time::Instant;

use coload_link::{Credit, Message};
use coload_threads::thread_cpu_ns;
use coload_types::{Error, Result};
use coload_wire::{PARSED, Parsed, TextFragment, TextIs};

use crate::active::Active;
use crate::partition::Next;
use crate::pool::Pool;

impl Active {
    /// Takes a text, on a thread of the pool, and tells what became of it.
    pub fn take_text(
        self: &Arc<Self>,
        attempt: u64,
        bytes: Vec<u8>,
        credit: Credit,
        pool: &Arc<Pool>,
    ) {
        let arrived = Instant::now();
        self.on_pool(attempt, bytes, credit, pool, move |active, bytes, pool| {
            active.text(attempt, &bytes, arrived, pool)
        });
    }

    fn text(
        self: &Arc<Self>,
        attempt: u64,
        bytes: &[u8],
        arrived: Instant,
        pool: &Arc<Pool>,
    ) -> Result<()> {
        let started = thread_cpu_ns();
        let text = TextFragment::decode(bytes)?;
        let Some(parser) = &self.text_parser else {
            return Err(Error::Corrupt("a text of a load that has none".into()));
        };
        let receiving = self.receiving(attempt, text.partition)?;
        let (is, next) = match &receiving {
            // It is durable, and this is a repetition.
            None => (TextIs::Taken, Next::Wait),
            // Few bytes of text may be many values.
            Some(_) if parser.bytes_max(&text) > self.memory_max => {
                (TextIs::HandedBack, Next::Wait)
            }
            Some(receiving) => receiving.take_text(&text, self.keep)?,
        };
        let cpu_ns = thread_cpu_ns() - started;
        let stay_ns = arrived.elapsed().as_nanos() as u64;
        let TextFragment { partition, fragment, .. } = text;
        let parsed = Parsed { partition, fragment, is, cpu_ns, stay_ns };
        self.tell(attempt, &Message::new(PARSED, parsed.encode()))?;
        match receiving {
            Some(receiving) => self.go_on(attempt, &receiving, next, pool),
            None => Ok(()),
        }
    }
}
