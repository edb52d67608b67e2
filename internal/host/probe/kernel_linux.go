package probe

import (
	"os"
	"strings"
)

// ReadKernel collects the settings that a failed trial is explained by. What
// cannot be read stays empty and explains nothing.
func ReadKernel() Kernel {
	k := Kernel{
		UnprivilegedClone: setting("/proc/sys/kernel/unprivileged_userns_clone"),
		AppArmorUserns:    setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
		AppArmor:          setting("/sys/module/apparmor/parameters/enabled") == "Y",
		MaxNamespaces:     map[string]string{},
		Filtered:          strings.Contains(setting("/proc/self/status"), "\nSeccomp:\t2"),
		Root:              os.Geteuid() == 0,
	}
	for _, kind := range kinds {
		k.MaxNamespaces[kind] = setting("/proc/sys/user/max_" + kind + "_namespaces")
	}
	if _, err := os.Lstat("/proc/self/ns/mnt"); err == nil {
		_, err = os.Lstat("/proc/self/ns/user")
		k.NoUserNamespaces = os.IsNotExist(err)
	}
	k.ProcCovered, k.ProcOptions = procState(setting("/proc/self/mountinfo"))
	return k
}

func setting(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
