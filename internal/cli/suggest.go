package cli

import "slices"

// similar finds the name that somebody probably meant, or "".
func similar(name string, names []string) string {
	best, least := "", max(1, len(name)/3) // so many slips at most
	for _, n := range names {
		if short := min(len(n), len(name)); short >= 3 && n != name && n[:short] == name[:short] {
			return n // cut short, or written out
		}
	}
	for _, n := range names {
		if d := distance(name, n); d <= least && d < len(n) {
			best, least = n, d-1
		}
	}
	return best
}

// distance counts the letters to insert, remove, replace or swap.
func distance(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row := rows[0], rows[1], rows[2]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = slices.Min([]int{last[j] + 1, row[j-1] + 1, last[j-1] + cost})
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		rows = [3][]int{last, row, before}
	}
	return rows[1][len(b)]
}
