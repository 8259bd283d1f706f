package initd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// UsagePath is the file in which the programs of a session count what they use of
// their GPU's memory, where its GPU is disguised to CUDA.
const UsagePath = Dir + "/usage"

// Where things lie in that file, bytes: driver/facade/usage.h lays it out. Before
// usageLock are magic, version and size; the peak and the refusals lie between.
const (
	usageMagic   = "COSPUSE\x00"
	usageVersion = 1
	usageSizeAt  = 12
	usageLock    = 16 // lock, total, overhead
	usagePeak    = 40
	usageSlots   = 56
)

// ForgetUse clears what the programs of a container's last life counted. They
// ended with it, but had pids of a numbering that went with them: nobody in there
// could tell. What the whole session came to stays.
func ForgetUse(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	var head [usageLock]byte
	info, err := file.Stat()
	if err == nil {
		_, err = file.ReadAt(head[:], 0)
	}
	if err != nil {
		return err
	}
	size := binary.NativeEndian.Uint32(head[usageSizeAt:])
	if string(head[:len(usageMagic)]) != usageMagic || binary.NativeEndian.Uint32(head[len(usageMagic):]) != usageVersion || int64(size) != info.Size() || size < usageSlots {
		return fmt.Errorf("%s is damaged, or of another version: each program counts for itself", path)
	}
	for from, to := range map[int64]int64{usageLock: usagePeak, usageSlots: int64(size)} {
		if _, err := file.WriteAt(make([]byte, to-from), from); err != nil {
			return err
		}
	}
	return nil
}
