package disguise_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// go-nvml serves one library a process, so the test binary is its own client:
// called with one of these, a library and what to ask, it prints and ends.
const (
	clientArgument = "nvml-client"
	timeArgument   = "nvml-timer"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == clientArgument {
		os.Exit(runClient(os.Args[2], os.Args[3:]))
	}
	if len(os.Args) > 3 && os.Args[1] == timeArgument {
		os.Exit(runTimer(os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

// answers are the values that a client got, by question; errors are NVML's numbers.
type answers map[string]any

// ask runs a client on a library. keys are UUIDs and PCI addresses with which it looks up a device.
func ask(t *testing.T, library string, keys ...string) answers {
	t.Helper()
	out, err := exec.Command(os.Args[0], append([]string{clientArgument, library, ""}, keys...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	reported := answers{}
	decoder := json.NewDecoder(bytes.NewReader(out))
	decoder.UseNumber()
	if err := decoder.Decode(&reported); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return reported
}

// expect compares the values that a client got with the expected ones.
func (reported answers) expect(t *testing.T, want answers) {
	t.Helper()
	for question, answer := range want {
		if got := fmt.Sprint(reported[question]); got != fmt.Sprint(answer) {
			t.Errorf("%s is %s, want %v", question, got, answer)
		}
	}
}

func runClient(library string, keys []string) int {
	reported := answers{}
	l := nvml.New(nvml.WithLibraryPath(library))
	reported["init"] = l.Init()
	reported["count"] = outcome(l.DeviceGetCount())
	_, second := l.DeviceGetHandleByIndex(1)
	reported["second"] = second
	for _, key := range keys[1:] {
		_, uuid := l.DeviceGetHandleByUUID(key)
		_, bus := l.DeviceGetHandleByPciBusId(key)
		_, serial := l.DeviceGetHandleBySerial(key)
		reported[key] = min(int(uuid), int(bus), int(serial))
	}
	reported["driver"] = outcome(l.SystemGetDriverVersion())
	d, ret := l.DeviceGetHandleByIndex(0)
	reported["first"] = ret
	if ret == nvml.SUCCESS {
		askDevice(reported, d)
	}
	reported["shutdown"] = l.Shutdown()
	reported["after"] = outcome(l.DeviceGetCount())
	if err := json.NewEncoder(os.Stdout).Encode(reported); err != nil {
		return 1
	}
	return 0
}

// outcome returns the answer, or the number of the error.
func outcome(value any, ret nvml.Return) any {
	if ret != nvml.SUCCESS {
		return "error " + strconv.Itoa(int(ret))
	}
	return value
}

func outcome2[A, B any](a A, b B, ret nvml.Return) any { return outcome([]any{a, b}, ret) }

func askDevice(reported answers, d nvml.Device) {
	const sm, memory = nvml.CLOCK_SM, nvml.CLOCK_MEM
	reported["name"] = outcome(d.GetName())
	reported["uuid"] = outcome(d.GetUUID())
	reported["index"] = outcome(d.GetIndex())
	reported["serial"] = outcome(d.GetSerial())
	reported["brand"] = outcome(d.GetBrand())
	reported["architecture"] = outcome(d.GetArchitecture())
	reported["capability"] = outcome2(d.GetCudaComputeCapability())
	reported["cores"] = outcome(d.GetNumGpuCores())
	reported["bus"] = outcome(d.GetMemoryBusWidth())
	reported["pcie"] = outcome(d.GetMaxPcieLinkGeneration())
	reported["pcie now"] = outcome(d.GetCurrPcieLinkGeneration())
	reported["temperature"] = outcome(d.GetTemperature(nvml.TEMPERATURE_GPU))

	reported["memory"] = outcome(d.GetMemoryInfo())
	reported["memory v2"] = outcome(d.GetMemoryInfo_v2())
	reported["BAR1"] = outcome(d.GetBAR1MemoryInfo())
	reported["processes"] = outcome(d.GetComputeRunningProcesses())
	reported["graphics"] = outcome(d.GetGraphicsRunningProcesses())

	reported["power"] = outcome(d.GetPowerManagementLimit())
	reported["power enforced"] = outcome(d.GetEnforcedPowerLimit())
	reported["power default"] = outcome(d.GetPowerManagementDefaultLimit())
	reported["power range"] = outcome2(d.GetPowerManagementLimitConstraints())
	reported["draw"] = outcome(d.GetPowerUsage())
	reported["utilization"] = outcome(d.GetUtilizationRates())
	reported["VBIOS"] = outcome(d.GetVbiosVersion())
	pci, ret := d.GetPciInfo()
	reported["PCI ids"] = outcome2(pci.PciDeviceId, pci.PciSubSystemId, ret)
	reported["memory clock"] = outcome(d.GetClockInfo(memory))
	reported["hottest memory"] = outcome(d.GetTemperatureThreshold(nvml.TEMPERATURE_THRESHOLD_MEM_MAX))
	reported["fields"] = fields(d)
	reported["clock"] = outcome(d.GetClockInfo(sm))
	reported["clock max"] = outcome(d.GetMaxClockInfo(sm))
	reported["memory clock max"] = outcome(d.GetMaxClockInfo(memory))
	reported["application clock"] = outcome(d.GetApplicationsClock(sm))
	reported["ECC"] = outcome2(d.GetEccMode())

	reported["MIG"] = outcome2(d.GetMigMode())
	reported["is MIG"] = outcome(d.IsMigDeviceHandle())
	reported["MIG devices"] = outcome(d.GetMaxMigDeviceCount())
	reported["MIG device"] = outcome(d.GetMigDeviceHandleByIndex(0))
	reported["GPU instance"] = outcome(d.GetGpuInstanceId())
	reported["attributes"] = outcome(d.GetAttributes())
	reported["profile"] = outcome(d.GetGpuInstanceProfileInfo(0))
	reported["set power"] = d.SetPowerManagementLimit(300_000)
	reported["set clock"] = d.SetGpuLockedClocks(900, 900)
	reported["set MIG"] = outcome(d.SetMigMode(0))
	reported["set persistence"] = d.SetPersistenceMode(nvml.FEATURE_ENABLED)
}

// fields reads by number: power limits, an ECC figure, a count of links, power and the temperature of the memory.
func fields(d nvml.Device) any {
	ids := []uint32{nvml.FI_DEV_POWER_MIN_LIMIT, nvml.FI_DEV_POWER_MAX_LIMIT, nvml.FI_DEV_POWER_DEFAULT_LIMIT,
		nvml.FI_DEV_POWER_CURRENT_LIMIT, nvml.FI_DEV_POWER_REQUESTED_LIMIT, nvml.FI_DEV_ECC_CURRENT, nvml.FI_DEV_NVLINK_LINK_COUNT,
		nvml.FI_DEV_POWER_AVERAGE, nvml.FI_DEV_POWER_INSTANT, nvml.FI_DEV_MEMORY_TEMP}
	values := make([]nvml.FieldValue, len(ids))
	for i, id := range ids {
		values[i].FieldId = id
	}
	ret := d.GetFieldValues(values)
	var got []string
	for _, v := range values {
		if nvml.Return(v.NvmlReturn) != nvml.SUCCESS {
			got = append(got, fmt.Sprint("error ", v.NvmlReturn))
			continue
		}
		got = append(got, fmt.Sprint(uint32(v.Value[0])|uint32(v.Value[1])<<8|uint32(v.Value[2])<<16|uint32(v.Value[3])<<24))
	}
	return outcome(got, ret)
}

// runTimer prints how many ns a call takes.
func runTimer(library, call string) int {
	l := nvml.New(nvml.WithLibraryPath(library))
	l.Init()
	d, ret := l.DeviceGetHandleByIndex(0)
	if ret != nvml.SUCCESS {
		return 1
	}
	calls := map[string]func(){
		"count":  func() { l.DeviceGetCount() },
		"name":   func() { d.GetName() },
		"power":  func() { d.GetPowerManagementLimit() },
		"memory": func() { d.GetMemoryInfo_v2() },
		"driver": func() { l.SystemGetDriverVersion() },
	}
	const rounds = 20_000
	start := time.Now()
	for range rounds {
		calls[call]()
	}
	fmt.Println(time.Since(start).Nanoseconds() / rounds)
	return 0
}
