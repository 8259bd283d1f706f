/*
 * Functions that a session must not use or whose feature the target lacks. They differ only in their return code, so
 * one definition serves all: NVML's arguments are numbers and pointers, at most six, and pass through in registers.
 * NVML's header has other prototypes, so this file does not include it.
 */
#include "driver.h"

enum { NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6 };

#define ANSWER(name, condition, answer)                                                               \
    __attribute__((visibility("default"))) long name(long a, long b, long c, long d, long e, long f); \
    long name(long a, long b, long c, long d, long e, long f)                                         \
    {                                                                                                 \
        DISGUISE(name, a, b, c, d, e, f);                                                             \
        return (condition) ? answer : DRIVER(name)(a, b, c, d, e, f);                                 \
    }

/* Features that no target has, and values that would reveal the physical GPU. */
#define HIDDEN(name) ANSWER(name, 1, NOT_SUPPORTED)

/* Changes of the physical GPU, which other sessions share. */
#define REFUSED(name) ANSWER(name, 1, NO_PERMISSION)

/* Features that gaming cards lack. */
#define PROFESSIONAL(name) ANSWER(name, target->consumer, NOT_SUPPORTED)

/* MIG. */
HIDDEN(nvmlDeviceGetMigMode)
HIDDEN(nvmlDeviceSetMigMode)
ANSWER(nvmlDeviceGetMigDeviceHandleByIndex, 1, NOT_FOUND)
HIDDEN(nvmlDeviceGetGpuInstanceId)
HIDDEN(nvmlDeviceGetComputeInstanceId)
HIDDEN(nvmlDeviceGetAttributes)
HIDDEN(nvmlDeviceGetAttributes_v2)
HIDDEN(nvmlDeviceGetGpuInstanceProfileInfo)
HIDDEN(nvmlDeviceGetGpuInstanceProfileInfoV)
HIDDEN(nvmlDeviceGetGpuInstanceProfileInfoByIdV)
HIDDEN(nvmlDeviceGetGpuInstancePossiblePlacements)
HIDDEN(nvmlDeviceGetGpuInstancePossiblePlacements_v2)
HIDDEN(nvmlDeviceGetGpuInstanceRemainingCapacity)
HIDDEN(nvmlDeviceGetGpuInstances)
HIDDEN(nvmlDeviceGetGpuInstanceById)
REFUSED(nvmlDeviceCreateGpuInstance)
REFUSED(nvmlDeviceCreateGpuInstanceWithPlacement)

/* The card and the machine around it. */
HIDDEN(nvmlDeviceGetSerial)
HIDDEN(nvmlDeviceGetVbiosVersion)
HIDDEN(nvmlDeviceGetSamples)
HIDDEN(nvmlDeviceGetBoardPartNumber)
HIDDEN(nvmlDeviceGetModuleId)
HIDDEN(nvmlDeviceGetPlatformInfo)
HIDDEN(nvmlDeviceGetPgpuMetadataString)
HIDDEN(nvmlDeviceGetSupportedVgpus)
HIDDEN(nvmlDeviceGetCreatableVgpus)
ANSWER(nvmlDeviceGetHandleBySerial, 1, NOT_FOUND)

/* Other GPUs. */
HIDDEN(nvmlDeviceGetTopologyNearestGpus)
HIDDEN(nvmlSystemGetTopologyGpuSet)
HIDDEN(nvmlDeviceGetGpuFabricInfo)
HIDDEN(nvmlDeviceGetGpuFabricInfoV)
HIDDEN(nvmlDeviceGetC2cModeInfoV)
HIDDEN(nvmlDeviceGetNvLinkState)
HIDDEN(nvmlDeviceGetNvLinkVersion)
HIDDEN(nvmlDeviceGetNvLinkCapability)
HIDDEN(nvmlDeviceGetNvLinkInfo)
HIDDEN(nvmlDeviceGetNvLinkErrorCounter)
HIDDEN(nvmlDeviceGetNvLinkRemoteDeviceType)
HIDDEN(nvmlDeviceGetNvLinkRemotePciInfo)
HIDDEN(nvmlDeviceGetNvLinkRemotePciInfo_v2)
HIDDEN(nvmlDeviceGetNvlinkBwMode)
HIDDEN(nvmlDeviceGetNvlinkSupportedBwModes)

/* Accounting of other processes. */
HIDDEN(nvmlDeviceGetAccountingPids)
HIDDEN(nvmlDeviceGetAccountingStats)

/* Clocks: ranges around those of the GPU behind. */
HIDDEN(nvmlDeviceGetGpcClkVfOffset)
HIDDEN(nvmlDeviceGetGpcClkMinMaxVfOffset)
HIDDEN(nvmlDeviceGetMemClkVfOffset)
HIDDEN(nvmlDeviceGetMemClkMinMaxVfOffset)
HIDDEN(nvmlDeviceGetClockOffsets)
HIDDEN(nvmlDeviceGetPerformanceModes)
HIDDEN(nvmlDeviceGetCurrentClockFreqs)

/* ECC, and what it found. */
PROFESSIONAL(nvmlDeviceGetEccMode)
PROFESSIONAL(nvmlDeviceGetDefaultEccMode)
PROFESSIONAL(nvmlDeviceGetTotalEccErrors)
PROFESSIONAL(nvmlDeviceGetDetailedEccErrors)
PROFESSIONAL(nvmlDeviceGetMemoryErrorCounter)
PROFESSIONAL(nvmlDeviceGetSramEccErrorStatus)
PROFESSIONAL(nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts)
PROFESSIONAL(nvmlDeviceGetRemappedRows)
PROFESSIONAL(nvmlDeviceGetRowRemapperHistogram)
PROFESSIONAL(nvmlDeviceGetRetiredPages)
PROFESSIONAL(nvmlDeviceGetRetiredPages_v2)
PROFESSIONAL(nvmlDeviceGetRetiredPagesPendingStatus)

/* Settings. */
REFUSED(nvmlDeviceSetPowerManagementLimit)
REFUSED(nvmlDeviceSetPowerManagementLimit_v2)
REFUSED(nvmlDeviceSetGpuLockedClocks)
REFUSED(nvmlDeviceResetGpuLockedClocks)
REFUSED(nvmlDeviceSetMemoryLockedClocks)
REFUSED(nvmlDeviceResetMemoryLockedClocks)
REFUSED(nvmlDeviceSetApplicationsClocks)
REFUSED(nvmlDeviceResetApplicationsClocks)
REFUSED(nvmlDeviceSetGpcClkVfOffset)
REFUSED(nvmlDeviceSetMemClkVfOffset)
REFUSED(nvmlDeviceSetClockOffsets)
REFUSED(nvmlDeviceSetAutoBoostedClocksEnabled)
REFUSED(nvmlDeviceSetDefaultAutoBoostedClocksEnabled)
REFUSED(nvmlDeviceSetPersistenceMode)
REFUSED(nvmlDeviceSetComputeMode)
REFUSED(nvmlDeviceSetEccMode)
REFUSED(nvmlDeviceClearEccErrorCounts)
REFUSED(nvmlDeviceSetAPIRestriction)
REFUSED(nvmlDeviceSetAccountingMode)
REFUSED(nvmlDeviceClearAccountingPids)
REFUSED(nvmlDeviceSetGpuOperationMode)
REFUSED(nvmlDeviceSetTemperatureThreshold)
REFUSED(nvmlDeviceSetVirtualizationMode)
REFUSED(nvmlDeviceSetPowerMizerMode_v1)
REFUSED(nvmlDevicePowerSmoothingActivatePresetProfile)
REFUSED(nvmlDevicePowerSmoothingUpdatePresetProfileParam)
REFUSED(nvmlDeviceWorkloadPowerProfileSetRequestedProfiles)
REFUSED(nvmlDeviceWorkloadPowerProfileClearRequestedProfiles)
REFUSED(nvmlDeviceModifyDrainState)
REFUSED(nvmlDeviceRemoveGpu)
REFUSED(nvmlDeviceRemoveGpu_v2)
