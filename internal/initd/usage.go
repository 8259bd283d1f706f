package initd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// UsagePath is the path of the usage file in a container.
const UsagePath = Dir + "/usage"

// Offsets in that file, in bytes, as in driver/facade/usage.h. Before usageLock are magic, version and size; the peak
// and the refusals are between the others.
const (
	usageMagic   = "COSPUSE\x00"
	usageVersion = 1
	usageLock    = 16 // lock, total, overhead
	usagePeak    = 40
	usageSlots   = 56
)

// ForgetUse clears the counts of programs from before the container's restart. They ended with it, and their pids
// belong to a namespace that no longer exists, so programs in the container cannot recognize them. The peak of the
// session stays.
func ForgetUse(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	var head struct {
		Magic         [len(usageMagic)]byte
		Version, Size uint32
	}
	info, err := file.Stat()
	if err == nil {
		err = binary.Read(file, binary.NativeEndian, &head)
	}
	if err != nil {
		return err
	}
	if string(head.Magic[:]) != usageMagic || head.Version != usageVersion || int64(head.Size) != info.Size() || head.Size < usageSlots {
		return fmt.Errorf("%s is damaged, or of another version: each program counts for itself", path)
	}
	for from, to := range map[int64]int64{usageLock: usagePeak, usageSlots: int64(head.Size)} {
		if _, err := file.WriteAt(make([]byte, to-from), from); err != nil {
			return err
		}
	}
	return nil
}
