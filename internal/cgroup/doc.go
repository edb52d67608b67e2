// Package cgroup holds the memory and process ceilings of one execution with
// cgroup v2 (Documentation/admin-guide/cgroup-v2.rst of the kernel). It writes the
// few files itself; names and values come from pure functions.
//
// A base is a cgroup that the helper may make children in. [Open] finds out whether
// there is one and changes nothing; [Base.Sweep] removes what killed helpers left;
// [Base.Create] makes the cgroup that an execution is born in, by
// clone3(CLONE_INTO_CGROUP), so that none of its processes ever ran outside.
//
// What it does not protect: CPU and I/O are not limited, memory that was charged
// elsewhere first (page cache that another cgroup read in) is not counted, and a
// base that another user may write to lets that user raise the ceilings. Without a
// base there is no ceiling at all; callers report that as a skip.
package cgroup
