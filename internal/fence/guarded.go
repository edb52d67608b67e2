package fence

// Guarded is one name of the default list.
type Guarded struct {
	Name string // below the directory it is listed for
	Why  string
	// Tried is the reader that works on while a directory stands in its place.
	Tried string
}

// GitGuarded are guarded in a repository's common directory and in those of its
// submodules.
var GitGuarded = []Guarded{
	{"hooks", "git runs what is in it", "git"},
	{"config", "names programs that git runs", "git"},
	{"config.worktree", "is configuration, too", "git"},
	{"commondir", "leads git to another configuration", "git"},
}

// WorktreeGuarded are guarded in the directory that a linked worktree has in its
// repository.
var WorktreeGuarded = []Guarded{
	{"commondir", "leads git to another configuration", "git"},
	{"config.worktree", "is configuration, too", "git"},
	{"gitdir", "names the worktree, which is verified before anything is granted", "git"},
}

// WorkspaceGuarded are guarded in a workspace that holds anything at all: in an
// empty one a clone must find nothing in its way.
var WorkspaceGuarded = []Guarded{
	{".vscode/settings.json", "an editor's settings name programs", ""},
	{".vscode/tasks.json", "tasks run when the folder is opened", ""},
	{".mcp.json", "names programs that a coding agent starts", ""},
	{".claude/settings.json", "a coding agent's hooks", ""},
	{".claude/settings.local.json", "a coding agent's hooks", ""},
	{".cursor/mcp.json", "names programs that a coding agent starts", ""},
}

// HomeGuarded are guarded where the workspace is the home directory itself.
var HomeGuarded = []Guarded{
	{".bashrc", "bash runs it", "bash"},
	{".bash_profile", "bash runs it", "bash"},
	{".bash_login", "bash runs it", "bash"},
	{".profile", "login shells run it", "sh"},
	{".zshenv", "zsh runs it", "zsh"},
	{".zprofile", "zsh runs it", "zsh"},
	{".zshrc", "zsh runs it", "zsh"},
	{".gitconfig", "names programs that git runs", "git"},
}
