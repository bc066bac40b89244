package demo

import (
	"maps"
	"sync"
)

// Table keeps rows in memory, by key. It is safe for concurrent use. Rows are
// values: what is handed out is a copy.
type Table[K comparable, V any] struct {
	mu   sync.RWMutex
	rows map[K]V
}

// NewTable returns a table with a copy of the given rows.
func NewTable[K comparable, V any](rows map[K]V) *Table[K, V] {
	t := &Table[K, V]{rows: make(map[K]V, len(rows))}
	maps.Copy(t.rows, rows)
	return t
}

// Find returns the row of a key.
func (t *Table[K, V]) Find(key K) (V, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	row, found := t.rows[key]
	return row, found
}

// Select returns the rows whose key passes, in no order.
func (t *Table[K, V]) Select(passes func(K) bool) []V {
	t.mu.RLock()
	defer t.mu.RUnlock()
	rows := []V{}
	for key, row := range t.rows {
		if passes(key) {
			rows = append(rows, row)
		}
	}
	return rows
}

// Put stores a row and reports whether there was one of that key.
func (t *Table[K, V]) Put(key K, row V) (replaced bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, replaced = t.rows[key]
	t.rows[key] = row
	return replaced
}

// Insert stores a row unless there is one of that key, and reports whether it did.
func (t *Table[K, V]) Insert(key K, row V) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, found := t.rows[key]; found {
		return false
	}
	t.rows[key] = row
	return true
}

// Delete removes a row and reports whether there was one.
func (t *Table[K, V]) Delete(key K) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, found := t.rows[key]
	delete(t.rows, key)
	return found
}
