//! Writes within the capacity, and freeing the space of files.
//!
//! Invariant: `used` is the sum of the space of the files that have a name or an open handle. It
//! exceeds the capacity only after the capacity was lowered.

use std::collections::BTreeSet;
use std::io;

use rustix::io::Errno;

use super::entry::{Entry, FileId};
use super::tree::{Inode, Tree};

/// Longest file. A longer one is refused with EFBIG, since its page table would be too large.
const MAX_FILE_LEN: u64 = 1 << 36;

impl Tree {
    /// Counts a call that asks for more space. With the chosen one the disk becomes full.
    fn note_allocation(&mut self) {
        self.allocations += 1;
        if self.allocations == self.full_from {
            self.capacity = self.used;
        }
    }

    /// Writes as much as fits, like a real disk. Only the next call fails.
    pub(super) fn write_at(&mut self, id: FileId, buf: &[u8], offset: u64) -> io::Result<usize> {
        let len = self.len_of(id)?;
        if offset.saturating_add(buf.len() as u64) > len {
            self.note_allocation();
        }
        let room = self.capacity.saturating_sub(self.used);
        let content = &mut self.files.get_mut(&id).ok_or(Errno::BADF)?.content;
        let reachable = len.saturating_add(room).min(MAX_FILE_LEN).saturating_sub(offset);
        let fitting = buf.len().min(usize::try_from(reachable).unwrap_or(usize::MAX));
        let written = buf.get(..fitting).unwrap_or_default();
        if written.is_empty() && !buf.is_empty() {
            return Err(if offset >= MAX_FILE_LEN { Errno::FBIG } else { Errno::NOSPC }.into());
        }
        if !written.is_empty() {
            content.write_at(written, offset, self.tracked);
            self.used += content.current().len() - len;
        }
        Ok(written.len())
    }

    pub(super) fn set_len(&mut self, id: FileId, new_len: u64) -> io::Result<()> {
        if new_len > MAX_FILE_LEN {
            return Err(Errno::FBIG.into());
        }
        let len = self.len_of(id)?;
        if new_len > len {
            self.note_allocation();
        }
        let file = self.files.get_mut(&id).ok_or(Errno::BADF)?;
        let (before, content) = (file.space(), &mut file.content);
        if new_len > len && new_len - len > self.capacity.saturating_sub(self.used) {
            return Err(Errno::NOSPC.into());
        }
        content.set_len(new_len, self.tracked);
        file.discarded = file.discarded.min(new_len);
        self.used = self.used - before + file.space();
        Ok(())
    }

    /// Zeros the front at once, also what is durable: a crash does not bring it back.
    pub(super) fn discard_front(&mut self, id: FileId, len: u64) -> io::Result<()> {
        let file = self.files.get_mut(&id).ok_or(Errno::BADF)?;
        if file.names > 1 {
            return Ok(());
        }
        let before = file.space();
        let len = len.min(file.content.current().len());
        file.content.discard_front(len);
        file.discarded = file.discarded.max(len);
        self.used = self.used - before + file.space();
        Ok(())
    }

    pub(super) fn allocate(&mut self, id: FileId, len: u64) -> io::Result<()> {
        if len > self.len_of(id)? { self.set_len(id, len) } else { Ok(()) }
    }

    fn len_of(&self, id: FileId) -> io::Result<u64> {
        Ok(self.files.get(&id).ok_or(Errno::BADF)?.content.current().len())
    }

    pub(super) fn sync_file(&mut self, id: FileId) -> io::Result<()> {
        self.files.get_mut(&id).ok_or(Errno::BADF)?.content.sync();
        Ok(())
    }

    pub(super) fn opened(&mut self, id: FileId) {
        if let Some(file) = self.files.get_mut(&id) {
            file.handles += 1;
        }
    }

    pub(super) fn closed(&mut self, id: FileId) {
        let Some(file) = self.files.get_mut(&id) else { return };
        file.handles = file.handles.saturating_sub(1);
        if !file.takes_space() {
            self.used -= file.space();
        }
        if !self.tracked {
            self.empty_limbo();
        }
    }

    /// Removes one name of `entry`.
    pub(super) fn unname(&mut self, entry: Entry) {
        if let Entry::File(id) = entry {
            let Some(file) = self.files.get_mut(&id) else { return };
            file.names = file.names.saturating_sub(1);
            if file.names > 0 {
                return;
            }
            if !file.takes_space() {
                self.used -= file.space();
            }
        }
        self.limbo.insert(entry);
    }

    /// Removes what neither a handle nor a crash can reach any more.
    pub(super) fn empty_limbo(&mut self) {
        if self.limbo.is_empty() {
            return;
        }
        let durable = self.dirs.values().flat_map(|dir| dir.durable.values().copied());
        let reachable: BTreeSet<Entry> = durable.chain(self.journal.entries()).collect();
        let (files, dirs) = (&mut self.files, &mut self.dirs);
        self.limbo.retain(|entry| {
            let is_open = match entry {
                Entry::File(id) => files.get(id).is_some_and(Inode::takes_space),
                Entry::Dir(_) => false,
            };
            let stays = is_open || reachable.contains(entry);
            match entry {
                Entry::File(id) if !stays => drop(files.remove(id)),
                Entry::Dir(id) if !stays => drop(dirs.remove(id)),
                _ => {}
            }
            stays
        });
    }

    /// Recomputes `used`, after many files were removed or replaced.
    pub(super) fn recount_used(&mut self) {
        let files = self.files.values().filter(|file| file.takes_space());
        self.used = files.map(Inode::space).sum();
    }
}
