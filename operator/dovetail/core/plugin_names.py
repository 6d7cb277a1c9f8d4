"""Under which extended resources device plugins offer the devices that DRA drivers publish."""

from collections.abc import Mapping

PLUGIN_RESOURCES: Mapping[str, tuple[str, ...]] = {
    "gpu.nvidia.com": ("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*", "nvidia.com/pgpu"),
    "hami-core-gpu.project-hami.io": ("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*"),
    "gpu.amd.com": (
        "amd.com/gpu",
        "amd.com/spx_*",
        "amd.com/dpx_*",
        "amd.com/tpx_*",
        "amd.com/qpx_*",
        "amd.com/cpx_*",
    ),
    # The plugin's monitoring resources give nobody a device of his own.
    "gpu.intel.com": ("gpu.intel.com/i915", "gpu.intel.com/xe"),
    "gaudi.intel.com": ("habana.ai/gaudi",),
    "qat.intel.com": ("qat.intel.com/*",),
    "npu.intel.com": ("npu.intel.com/accel",),
    "tpu.google.com": ("google.com/tpu",),
    "neuron.aws.com": (
        "aws.amazon.com/neuron",
        "aws.amazon.com/neuroncore",
        "aws.amazon.com/neurondevice",
    ),
    "npu.furiosa.ai": ("furiosa.ai/*",),
    "npu.rebellions.ai": ("rebellions.ai/*",),
    "tenstorrent.com": ("tenstorrent.com/*",),
    "spyre.ibm.com": ("ibm.com/spyre*",),
    "dra.hygon.com": ("hygon.com/dcu*",),
    "ascend.project-hami.io": ("huawei.com/Ascend*",),
}
"""The resources by driver; a name that ends in `*` stands for all that begin so.

Plugins for network devices are missing, since administrators choose their names:
a DeviceClass with such a name as `extendedResourceName` says whose devices they are.
"""


def offers_devices_of(resource: str, driver: str) -> bool:
    """Whether a device plugin is known to offer the driver's devices as this extended resource."""
    return any(_names(pattern, resource) for pattern in PLUGIN_RESOURCES.get(driver, ()))


def _names(pattern: str, resource: str) -> bool:
    return resource.startswith(pattern[:-1]) if pattern.endswith("*") else resource == pattern
