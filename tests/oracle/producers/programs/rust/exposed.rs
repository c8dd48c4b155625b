// Appended to the crate's lib.rs in a scratch copy: what is private to the crate, as bytes in and positions out.

#[doc(hidden)]
pub mod exposed {
    use std::sync::atomic::AtomicUsize;
    use std::sync::Arc;

    use crate::model::common::Route;
    use crate::pb::MessageQueue;
    use crate::util::{select_message_queue, select_message_queue_by_message_group};

    /// A route whose queues have their positions as ids.
    fn route(size: usize, start: usize) -> Arc<Route> {
        let queue = (0..size)
            .map(|id| MessageQueue { id: id as i32, ..MessageQueue::default() })
            .collect();
        Arc::new(Route { index: AtomicUsize::new(start), queue })
    }

    pub fn by_message_group(size: usize, group: String) -> i32 {
        select_message_queue_by_message_group(route(size, 0), group).id
    }

    pub fn taken(size: usize, start: usize, times: usize) -> Vec<i32> {
        let route = route(size, start);
        (0..times).map(|_| select_message_queue(Arc::clone(&route)).id).collect()
    }
}
