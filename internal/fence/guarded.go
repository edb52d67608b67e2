package fence

// Guarded is one name of the default list.
type Guarded struct {
	Name string // below the directory it is listed for
	Why  string
	// Tried is the reader that works on while a directory stands in its place.
	Tried string
	// IfThere leaves a missing one alone, whose reader dies on a directory.
	IfThere bool
}

// GitGuarded are guarded in a repository's common directory and in those of its
// submodules.
var GitGuarded = []Guarded{
	{"hooks", "git runs what is in it", "git", false},
	{"config", "names programs that git runs", "git", false},
	{"config.worktree", "is configuration, too", "git", false},
	{"commondir", "leads git to another configuration", "git", false},
}

// Modules is guarded in each of these and in a linked worktree's: a missing one is kept
// away, nothing is added to one that is there, and the git directories in it are
// guarded like the repository's own.
var Modules = Guarded{"modules", "holds the git directories of submodules", "git", false}

// WorktreeGuarded are guarded in the directory that a linked worktree has in its
// repository.
var WorktreeGuarded = []Guarded{
	{"commondir", "leads git to another configuration", "git", false},
	{"config.worktree", "is configuration, too", "git", false},
	{"gitdir", "names the worktree, which is verified before anything is granted", "git", false},
}

// WorkspaceGuarded are guarded in a workspace that holds anything at all: in an
// empty one a clone must find nothing in its way.
var WorkspaceGuarded = []Guarded{
	{".vscode/settings.json", "an editor's settings name programs", "", false},
	{".vscode/tasks.json", "tasks run when the folder is opened", "", false},
	{".vscode/mcp.json", "names programs that an editor starts", "", false},
	{".devcontainer/devcontainer.json", "names commands that an editor runs on the host", "", false},
	{".devcontainer.json", "names commands that an editor runs on the host", "", true},
	{"mise.toml", "a shell that trusts it runs its hooks", "", true},
	{".mise.toml", "a shell that trusts it runs its hooks", "", true},
	{".hg/hgrc", "names programs that Mercurial runs", "", true},
	{".jj/repo/config.toml", "names programs that Jujutsu runs", "", true},
	{".mcp.json", "names programs that a coding agent starts", "", false},
	{".claude/settings.json", "a coding agent's hooks", "", false},
	{".claude/settings.local.json", "a coding agent's hooks", "", false},
	{".cursor/mcp.json", "names programs that a coding agent starts", "", false},
	{".cursor/hooks.json", "a coding agent's hooks", "", false},
	{".gemini/settings.json", "names programs that a coding agent starts", "", false},
	{".codex/config.toml", "names programs that a coding agent starts", "", false},
}

// HomeGuarded are guarded in the home directory where the command may write them.
var HomeGuarded = []Guarded{
	{".bashrc", "bash runs it", "bash", false},
	{".bash_profile", "bash runs it", "bash", false},
	{".bash_login", "bash runs it", "bash", false},
	{".profile", "login shells run it", "sh", false},
	{".zshenv", "zsh runs it", "zsh", false},
	{".zprofile", "zsh runs it", "zsh", false},
	{".zshrc", "zsh runs it", "zsh", false},
	{".bash_logout", "bash runs it", "bash", false},
	{".bash_aliases", "bash runs it, where .bashrc says so", "bash", false},
	{".zlogin", "zsh runs it", "zsh", false},
	{".zlogout", "zsh runs it", "zsh", false},
	{".gitconfig", "names programs that git runs", "git", false},
	{".config/git", "names programs that git runs", "git", false},
	{".config/fish", "fish runs what is in it", "", false},
	{".config/autostart", "a desktop runs what is in it", "", false},
	{".config/systemd", "the user's service manager runs what is in it", "", false},
	{".config/environment.d", "sets variables of all programs", "", false},
	{".ssh", "lets others in, and names programs that ssh runs", "", false},
	{"bin", "shells look for programs there", "sh", false},
	{".local/bin", "shells look for programs there", "sh", false},
	{".cargo/bin", "shells look for programs there", "sh", false},
	{".gradle/init.d", "Gradle runs what is in it", "", false},
	{".cargo/config.toml", "names programs that cargo runs", "", true},
	{".npmrc", "names programs that npm runs", "", true},
	{".vimrc", "vim runs it", "", true},
	{".emacs", "Emacs runs it", "", true},
	{".emacs.d", "Emacs runs what is in it", "", true},
	{".tmux.conf", "tmux runs it", "", true},
	{".xprofile", "a desktop runs it", "", true},
	{".xsessionrc", "a desktop runs it", "", true},
	{".pam_environment", "sets variables of all programs", "", true},
}
