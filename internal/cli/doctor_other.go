//go:build !linux && !darwin

package cli

import "sandboxd/internal/doctor"

func surroundings(*doctor.Facts, options, System) {}
