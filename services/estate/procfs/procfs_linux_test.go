package procfs_test

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
	"time"

	"specialroutes.example/services/estate/procfs"
)

// busy takes processor time until done says so.
func busy(done func() bool) {
	for n := 0; !done(); n++ {
		_ = bytes.Repeat([]byte{byte(n)}, 1<<10)
	}
}

func TestCPUGrowsWithTheWorkOfTheProcess(t *testing.T) {
	before, err := procfs.CPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	const work = 50 * time.Millisecond
	deadline := time.Now().Add(time.Minute)
	var taken time.Duration
	busy(func() bool {
		after, err := procfs.CPU(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		taken = after - before
		return taken >= work || time.Now().After(deadline)
	})
	if taken < work {
		t.Errorf("a minute of work took %v of the processor", taken)
	}
}

func TestMemoryHasAPeakThatCanBeReset(t *testing.T) {
	start, err := procfs.MemoryOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if start.Resident <= 0 || start.Peak < start.Resident {
		t.Errorf("memory = %+v, want a peak that is no less than what is resident", start)
	}
	child := exec.Command("sh", "-c", `x=$(head -c 50000000 /dev/zero | tr '\0' x); echo "${#x}"; read y`)
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 16)); err != nil { // it holds its text now
		t.Fatal(err)
	}
	both, err := procfs.MemoryOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	own, err := procfs.MemoryOf(child.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if own.Resident < 50_000_000 || both.Resident < own.Resident {
		t.Errorf("the child holds %d, we with it %d; want at least its text's 50,000,000", own.Resident, both.Resident)
	}
	if err := procfs.ResetPeak(child.Process.Pid); err != nil {
		t.Fatal(err)
	}
	reset, err := procfs.MemoryOf(child.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if reset.Peak > own.Peak || reset.Peak > reset.Resident+8<<20 {
		t.Errorf("the peak is %d after its reset, want about what is resident, %d", reset.Peak, reset.Resident)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // read without a line is no success
}

func TestChildrenAndDescriptorsAreCounted(t *testing.T) {
	before, err := procfs.DescriptorKinds(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("cat")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	children, err := procfs.Children(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if len(children) != 1 || children[0] != child.Process.Pid {
		t.Errorf("children = %v, want %d", children, child.Process.Pid)
	}
	during, err := procfs.DescriptorKinds(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if during["pipe"] != before["pipe"]+1 {
		t.Errorf("%v with a pipe to a child, %v without", during, before)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	if children, err := procfs.Children(os.Getpid()); err != nil || len(children) != 0 {
		t.Errorf("children = %v, %v after its end, want none", children, err)
	}
	if _, err := procfs.DescriptorKinds(child.Process.Pid); err == nil {
		t.Error("a process that has ended has descriptors")
	}
}
