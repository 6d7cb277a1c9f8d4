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


def _choice(*cases: tuple[str, str]) -> str:
    """The value of the first condition that holds; an empty list, which is no value, where none does.

    `dyn` lets the value have any type: CEL wants both branches of a choice to agree.
    """
    return "\n".join([f"{condition} ? {value} :" for condition, value in cases] + ["dyn([])"])


def _first(*names: str) -> str:
    """The first attribute that is there."""
    return _choice(*((f"has({_read(name)})", _read(name)) for name in names))


def _any(*names: str) -> str:
    return " ||\n".join(f"has({_read(name)})" for name in names)


def _reading(driver: str, *names: str) -> Rule:
    return Rule(driver=driver, expression=_first(*names))


def _others(*names: str) -> Rule:
    """Drivers that no rule knows: served as soon as they publish one of the names, else there is no rule."""
    return Rule(driver="*", when=_any(*names), expression=_first(*names))


def _in_name(prefix: str, start: int, end: int) -> str:
    return f"device.name.substring({len(prefix) + start}, {len(prefix) + end})"


def _bus_in_name(driver: str, *, prefix: str = "", suffix: str = "") -> Rule:
    """Drivers that put the PCI address only into the device's name, with hyphens for its separators."""
    pattern = f"^{prefix}[0-9a-f]{{4}}-[0-9a-f]{{2}}-[0-9a-f]{{2}}-[0-7]{suffix}$"
    address = f'{_in_name(prefix, 0, 4)} + ":" + {_in_name(prefix, 5, 7)} + ":" + {_in_name(prefix, 8, 12)}'
    address += '.replace("-", ".")'
    standard = (f"has({_read(BUS)})", _read(BUS))
    return Rule(driver=driver, expression=_choice(standard, (f'device.name.matches("{pattern}")', address)))


def _intel_root(driver: str, domain: str, domain_is_known: str) -> Rule:
    """Intel's older releases publish only the root's bus; the PCI domain is taken from elsewhere.

    Without the domain, roots of different domains would look alike (R-A4).
    """
    bus = f"{driver}/pciRoot"
    return Rule(
        driver=driver,
        expression=_choice(
            (f"has({_read(ROOT)})", _read(ROOT)),
            (f'has({_read(bus)}) && {_read(bus)}.startsWith("pci")', _read(bus)),
            (
                f'has({_read(bus)}) && {_read(bus)}.matches("^[0-9a-f]{{2}}$") && {domain_is_known}',
                f'"pci" + {domain} + ":" + {_read(bus)}',
            ),
        ),
    )


_PRODUCT = "gpu.nvidia.com/productName"

# On GB200 and GB300 boards the PCI domain tells the CPU that a GPU hangs on.
# Released drivers publish no NUMA node there, and what the kernel says may be the GPU's own memory (R-A9).
_GRACE_BLACKWELL = Rule(
    driver="gpu.nvidia.com",
    when=" &&\n".join(
        (
            f"has({_read(_PRODUCT)})",
            f'{_read(_PRODUCT)}.matches("GB[23]00")',
            f"has({_read(BUS)})",
            f'{_read(BUS)}.matches("^00[01][89]:")',
            f"!(has({_read(NUMA)}) && {_read(NUMA)} in [0, 1])",
        )
    ),
    expression=f'{_read(BUS)}.startsWith("000") ? 0 : 1',
)

_INFO = "spyre.ibm.com/numaInfo"
_SPYRE_NUMA = Rule(
    driver="spyre.ibm.com",
    expression=_choice(
        (f"has({_read(NUMA)})", _read(NUMA)),
        (f'has({_read(_INFO)}) && {_read(_INFO)}.matches("^[0-9]+$")', f"int({_read(_INFO)})"),
        (f"has({_read(_INFO)})", "-1"),
    ),
)

_NUMA_RULES = (
    _GRACE_BLACKWELL,
    _reading("gpu.nvidia.com", NUMA, "gpu.nvidia.com/numa"),
    _reading("gpu.amd.com", NUMA, "gpu.amd.com/numaNode"),
    _reading("dra.net", NUMA, "dra.net/numaNode"),
    _reading("dra.cpu", NUMA, "dra.cpu/numaNodeID", "dra.net/numaNode"),
    _reading("dra.memory", NUMA, "dra.cpu/numaNodeID", "dra.net/numaNode"),
    _reading("sriovnetwork.k8snetworkplumbingwg.io", NUMA, "dra.net/numaNode"),
    _SPYRE_NUMA,
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
    _intel_root(
        "gpu.intel.com",
        f'{_read("gpu.intel.com/pciAddress")}.find("^[0-9a-f]+")',
        f"has({_read('gpu.intel.com/pciAddress')})",
    ),
    _intel_root("gaudi.intel.com", 'device.name.find("^[0-9a-f]+")', 'device.name.matches("^[0-9a-f]{4,}-")'),
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
    _bus_in_name("gaudi.intel.com", suffix="(-0x[0-9a-f]+)?"),
    _bus_in_name("qat.intel.com", prefix="qatvf-"),
    _bus_in_name("dra.hygon.com", prefix="hcu-"),
    _others(BUS),
)

_SOCKET_RULES = (
    _reading("dra.cpu", "dra.cpu/socketID"),
    _reading("dra.nvme", SOCKET),
    _others(SOCKET),
)

# Alibaba's eRDMA interfaces speak RDMA whatever the link says of itself.
_ERDMA = "alibaba.dra.net/erdma"
_DRANET_RDMA = Rule(
    driver="dra.net",
    expression=_choice(
        (f"has({_read(_ERDMA)}) && {_read(_ERDMA)}", "true"),
        (f"has({_read('dra.net/rdma')})", _read("dra.net/rdma")),
    ),
)

_RDMA_RULES = (
    _DRANET_RDMA,
    _reading("sriovnetwork.k8snetworkplumbingwg.io", "sriovnetwork.k8snetworkplumbingwg.io/rdmaCapable"),
    _others("dra.net/rdma", "sriovnetwork.k8snetworkplumbingwg.io/rdmaCapable"),
)

_FABRICS = (
    "oke.dra.net/gpuMemoryFabricId",
    "oke.dra.net/hpcIslandId",
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
