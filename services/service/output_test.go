package service

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

func TestOutput_KeepsTheOrderAndFlushesAtTheEnd(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	read := make(chan string)
	go func() {
		text, _ := io.ReadAll(r)
		read <- string(text)
	}()
	o := newOutput(w, "program", 1<<20)
	var want strings.Builder
	for i := range 1000 {
		fmt.Fprintf(io.MultiWriter(o, &want), "line %d\n", i)
	}
	o.close(20 * time.Second)
	fmt.Fprintln(o, "too late")
	_ = w.Close()
	if got := <-read; got != want.String() {
		t.Errorf("written was\n%s", got)
	}
}

func TestOutput_ThatTakesNothingHoldsUpNobodyAndIsToldOfWhatWasDropped(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe() // without a buffer: nothing is taken until it is read
	o := newOutput(w, "program", 1000)
	const lines = 500
	for i := range lines {
		if n, err := fmt.Fprintf(o, "line %d\n", i); n == 0 || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	begin := time.Now()
	o.close(50 * time.Millisecond)
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("close took %s, want no more than its limit", took)
	}
	go func() {
		o.close(20 * time.Second)
		_ = w.Close()
	}()
	kept := 0
	told := ""
	for scanner := bufio.NewScanner(r); scanner.Scan(); {
		if line := scanner.Text(); line == fmt.Sprintf("line %d", kept) {
			kept++
		} else {
			told += line
		}
	}
	if kept == 0 || kept > 1000/len("line 1\n") || !strings.Contains(told, fmt.Sprintf(`"lines":%d}`, lines-kept)) || !strings.Contains(told, `"service":"program"`) {
		t.Errorf("kept are %d lines, told is %q, want the first ones, and the number of the others", kept, told)
	}
}
