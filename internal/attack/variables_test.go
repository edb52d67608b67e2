//go:build linux

package attack

import (
	"fmt"
	"os"
)

// environment prints its environment, a line each: "@env".
func environment([]string) int {
	for _, v := range os.Environ() {
		fmt.Println(v)
	}
	return 0
}
