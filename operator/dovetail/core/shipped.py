"""The mappings that are built in: what public drivers publish, under one name per fact (design, section 3).

The facts are those of the drivers' public sources in summer 2026.
Each rule reads the standard name first, since a driver that publishes both means the same by both.
"""

from functools import cache

from dovetail.api.mappings import GROUP, DerivedAttribute, DerivedAttributeSpec, Rule
from dovetail.api.meta import ObjectMeta

UNKNOWN = (-1, "")
"""How drivers say that they do not know: -1 from the kernel, and an empty string where nothing resolved."""

NUMA = "resource.kubernetes.io/numaNode"
ROOT = "resource.kubernetes.io/pcieRoot"
BUS = "resource.kubernetes.io/pciBusID"
SOCKET = "resource.kubernetes.io/cpuSocketID"


def _read(name: str) -> str:
    domain, _, identifier = name.partition("/")
    return f'device.attributes["{domain}"].{identifier}'


def _first(*names: str) -> str:
    """The first attribute that is there; an empty list, which is no value, where none is."""
    return " : ".join([f"has({_read(name)}) ? {_read(name)}" for name in names] + ["[]"])


def _any(*names: str) -> str:
    return " || ".join(f"has({_read(name)})" for name in names)


def _reading(driver: str, *names: str) -> Rule:
    return Rule(driver=driver, expression=_first(*names))


def _others(*names: str) -> Rule:
    """Drivers that no rule knows: served as soon as they publish one of the names, else there is no rule."""
    return Rule(driver="*", when=_any(*names), expression=_first(*names))


# On GB200 and GB300 boards the PCI domain tells the CPU that a GPU hangs on.
# Released drivers publish no NUMA node there, and what the kernel says may be the GPU's own memory (R-A9).
_GRACE_BLACKWELL = Rule(
    driver="gpu.nvidia.com",
    when=(
        f"has({_read('gpu.nvidia.com/productName')}) && "
        f'{_read("gpu.nvidia.com/productName")}.matches("GB[23]00") && '
        f'has({_read(BUS)}) && {_read(BUS)}.matches("^00[01][89]:") && '
        f"!(has({_read(NUMA)}) && {_read(NUMA)} in [0, 1])"
    ),
    expression=f'{_read(BUS)}.startsWith("000") ? 0 : 1',
)

_NUMA_RULES = (
    _GRACE_BLACKWELL,
    _reading("gpu.nvidia.com", NUMA, "gpu.nvidia.com/numa"),
    _reading("gpu.amd.com", NUMA, "gpu.amd.com/numaNode"),
    _reading("dra.net", NUMA, "dra.net/numaNode"),
    _reading("dra.cpu", NUMA, "dra.cpu/numaNodeID", "dra.net/numaNode"),
    _reading("dra.memory", NUMA, "dra.cpu/numaNodeID", "dra.net/numaNode"),
    _reading("sriovnetwork.k8snetworkplumbingwg.io", NUMA, "dra.net/numaNode"),
    _reading("npu.rebellions.ai", NUMA),
    _reading("dra.nvme", NUMA, "dra.nvme/numaNode"),
    _reading("hami-core-gpu.project-hami.io", NUMA, "hami-core-gpu.project-hami.io/numa"),
    _reading("cpu.example.com", NUMA, "cpu.example.com/numaNodeID"),
    _others(NUMA, "composite/numaNode", "dra.net/numaNode"),
)

_ROOT_RULES = (
    *(
        _reading(driver, ROOT)
        for driver in (
            "gpu.nvidia.com",
            "gpu.amd.com",
            "dra.net",
            "dra.cpu",
            "sriovnetwork.k8snetworkplumbingwg.io",
            "npu.rebellions.ai",
            "hami-core-gpu.project-hami.io",
            "dra.nvme",
        )
    ),
    _others(ROOT),
)

_BUS_RULES = (
    _reading("gpu.nvidia.com", BUS, "gpu.nvidia.com/pcieBusID"),
    _reading("gpu.amd.com", BUS, "gpu.amd.com/pciAddr", "gpu.amd.com/parentPciAddr"),
    _reading("dra.net", BUS, "dra.net/pciAddress"),
    _reading("gpu.intel.com", BUS, "gpu.intel.com/pciAddress"),
    _reading("sriovnetwork.k8snetworkplumbingwg.io", BUS, "sriovnetwork.k8snetworkplumbingwg.io/pciAddress"),
    _reading("spyre.ibm.com", BUS, "spyre.ibm.com/pciAddress"),
    _reading("tenstorrent.com", BUS, "tenstorrent.com/pciAddress"),
    _reading("hami-core-gpu.project-hami.io", BUS, "hami-core-gpu.project-hami.io/pcieBusID"),
    _reading("npu.rebellions.ai", BUS),
    _reading("dra.nvme", BUS),
    _others(BUS),
)

_SOCKET_RULES = (
    _reading("dra.cpu", "dra.cpu/socketID"),
    _reading("dra.nvme", SOCKET),
    _others(SOCKET),
)

_RDMA_RULES = (
    _reading("dra.net", "dra.net/rdma"),
    _reading("sriovnetwork.k8snetworkplumbingwg.io", "sriovnetwork.k8snetworkplumbingwg.io/rdmaCapable"),
    _others("dra.net/rdma", "sriovnetwork.k8snetworkplumbingwg.io/rdmaCapable"),
)

_FABRICS = (
    "oke.dra.net/gpuMemoryFabricId",
    "azure.dra.net/interconnectGroupId",
    "azure.dra.net/placementGroupId",
)
_FABRIC_RULES = (_reading("dra.net", *_FABRICS), _others(*_FABRICS))


def _mapping(name: str, attribute: str, rules: tuple[Rule, ...]) -> DerivedAttribute:
    return DerivedAttribute(
        metadata=ObjectMeta(name=name),
        spec=DerivedAttributeSpec(attribute=f"{GROUP}/{attribute}", rules=rules, unknown=UNKNOWN),
    )


@cache
def shipped_mappings() -> tuple[DerivedAttribute, ...]:
    """The built-in mappings, each under the name that its manifest carries."""
    return (
        _mapping("numa-node", "numaNode", _NUMA_RULES),
        _mapping("pcie-root", "pcieRoot", _ROOT_RULES),
        _mapping("pci-bus-id", "pciBusID", _BUS_RULES),
        _mapping("socket", "socket", _SOCKET_RULES),
        _mapping("rdma", "rdma", _RDMA_RULES),
        _mapping("fabric", "fabric", _FABRIC_RULES),
    )
