//! What the pipeline makes goes to the server.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use coload_format::Result;
use coload_link::{Client, Message};
use coload_transform::Placement;

use super::choose::Chooser;
use crate::partition::PartitionPlan;
use crate::pipeline::Sink;
use crate::segments::lock;
use crate::wire::{BLOCK, Block, BlockContent, SEAL, Seal};

/// Sends the blocks of partitions that the server does not have.
pub struct Sender<'a> {
    client: &'a Client,
    chooser: &'a Chooser,
    /// Partitions that are durable at the server.
    durable: Mutex<BTreeSet<u32>>,
}

impl<'a> Sender<'a> {
    /// A sender to a server that has these partitions.
    pub fn new(client: &'a Client, chooser: &'a Chooser, durable: BTreeSet<u32>) -> Self {
        Sender { client, chooser, durable: Mutex::new(durable) }
    }

    /// Notes that a partition is durable; says how many are.
    pub fn sealed(&self, partition: u32) -> usize {
        let mut durable = lock(&self.durable);
        durable.insert(partition);
        durable.len()
    }

    /// Partitions that are durable.
    pub fn durable(&self) -> usize {
        lock(&self.durable).len()
    }

    fn has(&self, partition: u32) -> bool {
        lock(&self.durable).contains(&partition)
    }
}

impl Sink for Sender<'_> {
    fn place(
        &self,
        partition: usize,
        plan: &PartitionPlan,
        base_ns: Option<f64>,
    ) -> Arc<[Placement]> {
        let load = self.client.receiver_load();
        self.chooser.place(partition, plan, base_ns, &self.client.stats(), &load)
    }

    fn send(&self, partition: usize, column: usize, content: BlockContent) -> Result<()> {
        let (partition, column) = (partition as u32, column as u32);
        if self.has(partition) {
            return Ok(());
        }
        let block = Block { partition, column, content }.encode();
        self.client.push(Message::new(BLOCK, block))
    }

    fn seal(&self, seal: Seal) -> Result<()> {
        if self.has(seal.partition) {
            return Ok(());
        }
        self.client.push(Message::new(SEAL, seal.encode()))
    }
}
