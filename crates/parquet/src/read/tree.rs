//! What lists and maps are made of.
//!
//! ```text
//!   optional group tags (LIST) { repeated group list { optional binary element } }      level 1 NULL above, 2 an item, 3 a value
//! ```
//!
//! Old writers have lists of two levels, and repeated fields without a list around them; which is which the names and the number
//! of fields say.
//!
//! Source: parquet.apache.org, logical types, LIST and MAP with their rules of backward compatibility.

use coload_arrow::{Fault, json_name};
use coload_types::ElementType;

use super::logical::Logical;
use super::schema::{DEPTH_MAX, Element, Stored, Tree};

/// A list or a map: what it is made of, and where the values are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nested {
    /// What each row is.
    pub(super) node: Node,
    /// Where the values of its leaves are, in the order of their column chunks.
    pub leaves: Vec<Stored>,
}

/// A part of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    /// A value, by the number of its leaf.
    Leaf(usize),
    /// Fields with their names as JSON; there from a level on.
    Group { level: u32, fields: Vec<(String, Node)>, leaves: (usize, usize) },
    /// Items, as they come again at a level of lists.
    List(Box<Items>),
    /// Keys and, if there are any, values.
    Map { items: Box<Items>, has_values: bool },
}

/// What comes several times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Items {
    /// From this level on it is there, and may be empty.
    pub level: u32,
    /// From this level on there is an item.
    pub item_level: u32,
    /// The level of lists at which the next item comes.
    pub again: u32,
    pub item: Node,
    /// The leaves within: the first, and behind the last.
    pub leaves: (usize, usize),
}

impl Nested {
    /// The type of the elements, if it is a list of values of which a column has lists.
    pub fn element(&self) -> Option<ElementType> {
        let Node::List(items) = &self.node else { return None };
        let (Node::Leaf(_), [leaf]) = (&items.item, &self.leaves[..]) else { return None };
        ElementType::of(leaf.values.sql_type().ok()?)
    }

    /// Whether it is a list of nothing but NULL.
    pub fn is_of_nulls(&self) -> bool {
        self.element().is_some() && self.leaves.iter().all(|leaf| leaf.is_null)
    }
}

impl Node {
    /// The leaves within: the first, and behind the last.
    pub(super) fn leaves(&self) -> (usize, usize) {
        match self {
            Node::Leaf(leaf) => (*leaf, leaf + 1),
            Node::Group { leaves, .. } => *leaves,
            Node::List(items) | Node::Map { items, .. } => items.leaves,
        }
    }
}

/// What a list, a map or a group of the schema is, whose elements come next; `None` when a value within it is of a type that is not read.
///
/// # Errors
/// `Damaged` when the elements are no tree.
pub(super) fn nested_of(
    tree: &mut Tree<'_>,
    element: &Element,
    level: u32,
) -> Result<Option<Nested>, Fault> {
    let mut making = Making { leaves: Vec::new(), is_read: true };
    let node = making.node(tree, element, At { level, lists: 0, depth: 0 })?;
    Ok(making.is_read.then_some(Nested { node, leaves: making.leaves }))
}

/// The levels around an element.
#[derive(Debug, Clone, Copy)]
struct At {
    level: u32,
    lists: u32,
    depth: usize,
}

struct Making {
    leaves: Vec<Stored>,
    is_read: bool,
}

impl Making {
    fn node(&mut self, tree: &mut Tree<'_>, element: &Element, at: At) -> Result<Node, Fault> {
        if at.depth > DEPTH_MAX {
            return Err(Fault::Damaged(format!("fields within fields, over {DEPTH_MAX} deep")));
        }
        let (is_optional, is_repeated) = element.repetition();
        let at = At { depth: at.depth + 1, ..at };
        if is_repeated {
            return self.items(at, |making, at| making.inner(tree, element, at)).map(Node::List);
        }
        self.inner(tree, element, At { level: at.level + u32::from(is_optional), ..at })
    }

    /// What comes several times; `at` is around it.
    fn items(
        &mut self,
        at: At,
        item: impl FnOnce(&mut Self, At) -> Result<Node, Fault>,
    ) -> Result<Box<Items>, Fault> {
        let first = self.leaves.len();
        let (item_level, again) = (at.level + 1, at.lists + 1);
        let item = item(self, At { level: item_level, lists: again, depth: at.depth })?;
        let leaves = (first, self.leaves.len());
        // Without a value nothing tells how often it comes.
        self.is_read &= first < leaves.1;
        Ok(Box::new(Items { level: at.level, item_level, again, item, leaves }))
    }

    /// An element whose own repetition is in the levels already.
    fn inner(&mut self, tree: &mut Tree<'_>, element: &Element, at: At) -> Result<Node, Fault> {
        if element.children() == 0 {
            return self.leaf(tree, element, at);
        }
        match element.logical() {
            Logical::List if element.children() == 1 => {
                let child = tree.next()?;
                if child.repetition().1 {
                    let name = element.name();
                    let items = self.items(at, |making, at| making.item(tree, child, name, at))?;
                    return Ok(Node::List(items));
                }
                self.group_of(tree, vec![child], at)
            }
            Logical::Map if element.children() == 1 => {
                let child = tree.next()?;
                if child.repetition().1 && matches!(child.children(), 1 | 2) {
                    let has_values = child.children() == 2;
                    let items = self.items(at, |making, at| making.group(tree, child, at))?;
                    return Ok(Node::Map { items, has_values });
                }
                self.group_of(tree, vec![child], at)
            }
            Logical::Other(_) => {
                self.is_read = false;
                self.group(tree, element, at)
            }
            _ => self.group(tree, element, at),
        }
    }

    /// The item of a list: what is repeated, or the only field within it.
    fn item(
        &mut self,
        tree: &mut Tree<'_>,
        child: &Element,
        list: &str,
        at: At,
    ) -> Result<Node, Fault> {
        let is_old = child.name() == "array" || child.name() == format!("{list}_tuple");
        if child.children() != 1 || is_old {
            return self.inner(tree, child, at);
        }
        let only = tree.next()?;
        self.node(tree, only, at)
    }

    fn leaf(&mut self, tree: &mut Tree<'_>, element: &Element, at: At) -> Result<Node, Fault> {
        let number = self.leaves.len();
        if element.is_group() {
            // A group without fields has no values that would tell whether it is there.
            self.is_read = false;
            return Ok(Node::Group {
                level: at.level,
                fields: Vec::new(),
                leaves: (number, number),
            });
        }
        match tree.leaf(element, at.level, at.lists)? {
            Some(stored) => self.leaves.push(stored),
            None => self.is_read = false,
        }
        Ok(Node::Leaf(number))
    }

    fn group(&mut self, tree: &mut Tree<'_>, element: &Element, at: At) -> Result<Node, Fault> {
        let first = self.leaves.len();
        let mut fields = Vec::new();
        for _ in 0..element.children() {
            let child = tree.next()?;
            fields.push((json_name(child.name()), self.node(tree, child, at)?));
        }
        Ok(Node::Group { level: at.level, fields, leaves: (first, self.leaves.len()) })
    }

    /// A group whose first field was looked at already.
    fn group_of(
        &mut self,
        tree: &mut Tree<'_>,
        children: Vec<&Element>,
        at: At,
    ) -> Result<Node, Fault> {
        let first = self.leaves.len();
        let mut fields = Vec::new();
        for child in children {
            fields.push((json_name(child.name()), self.node(tree, child, at)?));
        }
        Ok(Node::Group { level: at.level, fields, leaves: (first, self.leaves.len()) })
    }
}
