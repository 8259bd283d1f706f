package process

import (
	"io/fs"
	"slices"
	"testing"
)

// TestKnown: the loader's cache gives the paths of the libraries that have a facade, wherever they are.
func TestKnown(t *testing.T) {
	cache := "glibc-ld.so.cache1.1\x03\x00\x00\x00\xff\x02libcuda.so.1\x00/usr/local/cuda/compat/libcuda.so.1\x00" +
		"/usr/lib/libcuda.so.1\x00libcudart.so.12\x00/usr/lib/libcudart.so.12\x00/usr/lib/libcuda.so\x00/usr/lib/nvidia/libnvidia-ml.so.1\x00"
	want := []string{"/usr/local/cuda/compat/libcuda.so.1", "/usr/lib/libcuda.so.1", "/usr/lib/nvidia/libnvidia-ml.so.1"}
	if got := known([]byte(cache), nil); !slices.Equal(got, want) {
		t.Errorf("known paths are %q, want %q", got, want)
	}
	if got := known(nil, fs.ErrNotExist); got != nil {
		t.Errorf("without a cache they are %q", got)
	}
}
