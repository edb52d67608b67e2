//go:build unix && !linux && !darwin

package witness

func platformRoles() []role { return unixRoles() }

func endedAs(int) (int, error) { return 0, errLacks }

func sockets(r *reporter, families []string) {
	for _, name := range families {
		r.answer(name, "", errLacks)
	}
}
