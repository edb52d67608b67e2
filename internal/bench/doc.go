// Package bench holds the benchmarks of the whole program: side by side in one run,
// as ratios, because machines are shared and noisy. It is empty outside tests.
package bench
