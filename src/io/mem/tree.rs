//! The directories, names and links of one in-memory file system.
//!
//! Invariants:
//! - `names` of a file counts the current entries that refer to it. Without a name and an open
//!   handle it takes no space (`space.rs`). It stays in limbo until no durable name and no unsynced
//!   change of names can bring it back after a crash;
//! - without `tracked` there is no journal, and durable names are not recorded;
//! - everything is ordered by id, so that a crash repeats from its seed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;

use super::content::Content;
use super::entry::{DirId, Entry, FileId};
use super::journal::{Journal, NameChange, Rebind};

pub(super) type Names = BTreeMap<OsString, Entry>;

#[derive(Clone, Debug, Default)]
pub(super) struct Directory {
    pub(super) current: Names,
    pub(super) durable: Names,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Inode {
    pub(super) content: Content,
    pub(super) names: u32,
    pub(super) handles: u32,
    /// Bytes at the front whose space was given back.
    pub(super) discarded: u64,
}

impl Inode {
    pub(super) fn takes_space(&self) -> bool {
        self.names > 0 || self.handles > 0
    }

    /// Bytes of disk space of the file while it takes any.
    pub(super) fn space(&self) -> u64 {
        self.content.current().len().saturating_sub(self.discarded)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) files: BTreeMap<FileId, Inode>,
    pub(super) dirs: BTreeMap<DirId, Directory>,
    pub(super) journal: Journal,
    /// Entries without a current name, which may still have a durable one.
    pub(super) limbo: BTreeSet<Entry>,
    pub(super) used: u64,
    pub(super) capacity: u64,
    /// Number of calls that asked for more space.
    pub(super) allocations: u64,
    /// From this one of them on, the disk has no more space than what is in use then.
    pub(super) full_from: u64,
    /// Whether to track what is durable.
    pub(super) tracked: bool,
    next_id: u64,
}

pub(super) const ROOT: DirId = DirId(0);

impl Tree {
    pub(super) fn new(tracked: bool) -> Self {
        Self {
            files: BTreeMap::new(),
            dirs: BTreeMap::from([(ROOT, Directory::default())]),
            journal: Journal::default(),
            limbo: BTreeSet::new(),
            used: 0,
            capacity: u64::MAX,
            allocations: 0,
            full_from: u64::MAX,
            tracked,
            next_id: ROOT.0 + 1,
        }
    }

    fn fresh_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }
}

/// Path resolution.
impl Tree {
    pub(super) fn dir_at(&self, path: &Path) -> io::Result<DirId> {
        let mut dir = ROOT;
        for component in path.components() {
            dir = match component {
                Component::RootDir | Component::CurDir => dir,
                Component::Normal(name) => match self.entry_in(dir, name) {
                    Some(Entry::Dir(child)) => child,
                    Some(Entry::File(_)) => return Err(Errno::NOTDIR.into()),
                    None => return Err(Errno::NOENT.into()),
                },
                Component::ParentDir | Component::Prefix(_) => return Err(Errno::INVAL.into()),
            };
        }
        Ok(dir)
    }

    fn entry_in(&self, dir: DirId, name: &OsStr) -> Option<Entry> {
        self.dirs.get(&dir)?.current.get(name).copied()
    }

    /// The directory of a path, and the name in it.
    fn place_of<'p>(&self, path: &'p Path) -> io::Result<(DirId, &'p OsStr)> {
        let name = path.file_name().ok_or(Errno::INVAL)?;
        Ok((self.dir_at(path.parent().unwrap_or(Path::new("")))?, name))
    }

    fn entry_at(&self, path: &Path) -> io::Result<Option<Entry>> {
        let (dir, name) = self.place_of(path)?;
        Ok(self.entry_in(dir, name))
    }

    pub(super) fn file_at(&self, path: &Path) -> io::Result<FileId> {
        match self.entry_at(path)? {
            Some(Entry::File(id)) => Ok(id),
            Some(Entry::Dir(_)) => Err(Errno::ISDIR.into()),
            None => Err(Errno::NOENT.into()),
        }
    }

    pub(super) fn exists(&self, path: &Path) -> io::Result<bool> {
        if path.file_name().is_none() {
            return self.dir_at(path).map(|_| true);
        }
        match self.entry_at(path) {
            Ok(entry) => Ok(entry.is_some()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    pub(super) fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let dir = self.dirs.get(&self.dir_at(dir)?).ok_or(Errno::NOENT)?;
        Ok(dir.current.keys().map(PathBuf::from).collect())
    }

    /// The paths of all files, in order.
    pub(super) fn file_paths(&self) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        let mut left = vec![(PathBuf::from("/"), ROOT)];
        while let Some((path, dir)) = left.pop() {
            for (name, entry) in self.dirs.get(&dir).into_iter().flat_map(|d| &d.current) {
                match entry {
                    Entry::File(_) => paths.push(path.join(name)),
                    Entry::Dir(child) => left.push((path.join(name), *child)),
                }
            }
        }
        paths.sort();
        paths
    }
}

/// Changes of names.
impl Tree {
    pub(super) fn create(&mut self, path: &Path) -> io::Result<FileId> {
        let (dir, name) = self.vacant_place(path)?;
        let id = FileId(self.fresh_id());
        self.files.insert(id, Inode::default());
        self.change(vec![rebind(dir, name, Some(Entry::File(id)))]);
        Ok(id)
    }

    pub(super) fn create_dir(&mut self, path: &Path) -> io::Result<()> {
        let (dir, name) = self.vacant_place(path)?;
        let id = DirId(self.fresh_id());
        self.dirs.insert(id, Directory::default());
        self.change(vec![rebind(dir, name, Some(Entry::Dir(id)))]);
        Ok(())
    }

    pub(super) fn hard_link(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let Some(entry) = self.entry_at(from)? else { return Err(Errno::NOENT.into()) };
        if matches!(entry, Entry::Dir(_)) {
            return Err(Errno::PERM.into());
        }
        let (dir, name) = self.vacant_place(to)?;
        self.change(vec![rebind(dir, name, Some(entry))]);
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.file_at(path)?;
        let (dir, name) = self.place_of(path)?;
        self.change(vec![rebind(dir, name, None)]);
        Ok(())
    }

    pub(super) fn remove_dir(&mut self, path: &Path) -> io::Result<()> {
        let (dir, name) = self.place_of(path)?;
        match self.entry_in(dir, name) {
            Some(Entry::Dir(id)) => self.must_be_empty(id)?,
            Some(Entry::File(_)) => return Err(Errno::NOTDIR.into()),
            None => return Err(Errno::NOENT.into()),
        }
        self.change(vec![rebind(dir, name, None)]);
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let (from_dir, from_name) = self.place_of(from)?;
        let (to_dir, to_name) = self.place_of(to)?;
        let entry = self.entry_in(from_dir, from_name).ok_or(Errno::NOENT)?;
        let replaced = self.entry_in(to_dir, to_name);
        if replaced == Some(entry) {
            return Ok(());
        }
        match (entry, replaced) {
            (Entry::Dir(_), _) if to.starts_with(from) => return Err(Errno::INVAL.into()),
            (Entry::Dir(_), Some(Entry::File(_))) => return Err(Errno::NOTDIR.into()),
            (Entry::File(_), Some(Entry::Dir(_))) => return Err(Errno::ISDIR.into()),
            (Entry::Dir(_), Some(Entry::Dir(id))) => self.must_be_empty(id)?,
            (Entry::File(_), Some(Entry::File(_))) | (_, None) => {}
        }
        // The new name comes first: without a name, the file would be freed.
        self.change(vec![rebind(to_dir, to_name, Some(entry)), rebind(from_dir, from_name, None)]);
        Ok(())
    }

    pub(super) fn sync_dir(&mut self, dir: &Path) -> io::Result<()> {
        let dir = self.dir_at(dir)?;
        for change in self.journal.take_synced(dir) {
            self.make_durable(&change);
        }
        self.empty_limbo();
        Ok(())
    }

    /// Applies a change to the durable names. A move of a directory is skipped if the directory is
    /// not at its old name: out of order, it would get two names.
    pub(super) fn make_durable(&mut self, change: &NameChange) {
        if let [to, from] = change.0.as_slice()
            && let Some(entry @ Entry::Dir(_)) = to.entry
            && self.dirs.get(&from.dir).and_then(|dir| dir.durable.get(&from.name)) != Some(&entry)
        {
            return;
        }
        for Rebind { dir, name, entry } in &change.0 {
            if let Some(dir) = self.dirs.get_mut(dir) {
                replace(&mut dir.durable, name, *entry);
            }
        }
    }

    fn vacant_place<'p>(&self, path: &'p Path) -> io::Result<(DirId, &'p OsStr)> {
        let (dir, name) = self.place_of(path)?;
        match self.entry_in(dir, name) {
            Some(_) => Err(Errno::EXIST.into()),
            None => Ok((dir, name)),
        }
    }

    fn must_be_empty(&self, dir: DirId) -> io::Result<()> {
        match self.dirs.get(&dir) {
            Some(dir) if !dir.current.is_empty() => Err(Errno::NOTEMPTY.into()),
            _ => Ok(()),
        }
    }

    fn change(&mut self, rebinds: Vec<Rebind>) {
        for Rebind { dir, name, entry } in &rebinds {
            let Some(dir) = self.dirs.get_mut(dir) else { continue };
            let old = replace(&mut dir.current, name, *entry);
            if let Some(Entry::File(id)) = entry
                && let Some(file) = self.files.get_mut(id)
            {
                file.names += 1;
            }
            if let Some(old) = old {
                self.unname(old);
            }
        }
        if self.tracked {
            self.journal.push(NameChange(rebinds));
        } else {
            self.empty_limbo();
        }
    }

    /// Creates or replaces the file at `path` with durable content, whatever the capacity.
    pub(super) fn put_file(&mut self, path: &Path, content: Content) -> io::Result<()> {
        let (dir, name) = self.place_of(path)?;
        let id = match self.entry_in(dir, name) {
            Some(Entry::File(id)) => id,
            Some(Entry::Dir(_)) => return Err(Errno::ISDIR.into()),
            None => self.create_durable(dir, name),
        };
        let file = self.files.get_mut(&id).ok_or(Errno::NOENT)?;
        self.used = self.used - file.content.current().len() + content.current().len();
        file.content = content;
        Ok(())
    }

    fn create_durable(&mut self, dir: DirId, name: &OsStr) -> FileId {
        let id = FileId(self.fresh_id());
        self.files.insert(id, Inode { names: 1, ..Inode::default() });
        if let Some(dir) = self.dirs.get_mut(&dir) {
            replace(&mut dir.current, name, Some(Entry::File(id)));
            replace(&mut dir.durable, name, Some(Entry::File(id)));
        }
        id
    }
}

fn rebind(dir: DirId, name: &OsStr, entry: Option<Entry>) -> Rebind {
    Rebind { dir, name: name.to_owned(), entry }
}

fn replace(names: &mut Names, name: &OsStr, entry: Option<Entry>) -> Option<Entry> {
    match entry {
        Some(entry) => names.insert(name.to_owned(), entry),
        None => names.remove(name),
    }
}
