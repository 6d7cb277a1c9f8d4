"""What the shipped mappings read of releases and boards that the slices do not show."""

from typing import Any

import pytest

from dovetail.core.attributes import Mappings, Missing, MissingCause
from dovetail.core.cel import Memory
from dovetail.core.devices import DeviceView
from dovetail.core.values import AttributeValue
from tests.mappings.worlds import Plain, device, published, value

SHIPPED = Mappings.of(())
NUMA = "resource.kubernetes.io/numaNode"
BUS = "resource.kubernetes.io/pciBusID"
PRODUCT = "gpu.nvidia.com/productName"


def derive(attribute: str, view: DeviceView) -> AttributeValue | Missing:
    mapping = SHIPPED.find(f"dovetail.dev/{attribute}")
    assert mapping is not None
    return mapping.derive(view, Memory())


def cause(attribute: str, view: DeviceView) -> MissingCause | None:
    answer = derive(attribute, view)
    return answer.cause if isinstance(answer, Missing) else None


def test_every_shipped_expression_compiles() -> None:
    """None of them waits for its first device to fail."""
    assert {mapping.attribute: mapping.problems for mapping in SHIPPED.effective.values()} == {
        f"dovetail.dev/{name}": ()
        for name in ("numaNode", "pcieRoot", "pciBusID", "socket", "rdma", "fabric")
    }


@pytest.mark.parametrize(
    "driver",
    ["gpu.nvidia.com", "gpu.amd.com", "dra.net", "dra.cpu", "gpu.intel.com", "tomorrow.example.com"],
)
def test_standard_names_serve_every_driver(driver: str) -> None:
    """A driver that publishes the standard names tomorrow needs no change here."""
    view = published(
        driver,
        {NUMA: [1, 0], "resource.kubernetes.io/pcieRoot": "pci0000:80", BUS: "0000:81:00.0"},
    )

    assert derive("numaNode", view) == value([1, 0])
    assert derive("pcieRoot", view) == value("pci0000:80")
    assert derive("pciBusID", view) == value("0000:81:00.0")


@pytest.mark.parametrize(
    ("driver", "legacy"),
    [
        ("gpu.nvidia.com", "gpu.nvidia.com/numa"),
        ("gpu.amd.com", "gpu.amd.com/numaNode"),
        ("dra.net", "dra.net/numaNode"),
        ("dra.cpu", "dra.cpu/numaNodeID"),
        ("dra.cpu", "dra.net/numaNode"),
        ("dra.memory", "dra.cpu/numaNodeID"),
        ("sriovnetwork.k8snetworkplumbingwg.io", "dra.net/numaNode"),
        ("dra.nvme", "dra.nvme/numaNode"),
        ("hami-core-gpu.project-hami.io", "hami-core-gpu.project-hami.io/numa"),
        ("cpu.example.com", "cpu.example.com/numaNodeID"),
        ("any.composite.example", "composite/numaNode"),
        ("alias.example.com", "dra.net/numaNode"),
    ],
)
def test_each_legacy_name_of_the_numa_node_is_read_until_the_standard_one_is_there(
    driver: str, legacy: str
) -> None:
    """When both are there and disagree, the standard name counts."""
    assert derive("numaNode", published(driver, {legacy: 1})) == value(1)
    assert derive("numaNode", published(driver, {legacy: 1, NUMA: 0})) == value(0)
    assert cause("numaNode", published(driver, {legacy: -1})) is MissingCause.UNKNOWN
    assert cause("numaNode", published(driver, {NUMA: -1})) is MissingCause.UNKNOWN


@pytest.mark.parametrize(
    ("driver", "legacy"),
    [
        ("gpu.nvidia.com", "gpu.nvidia.com/pcieBusID"),
        ("gpu.amd.com", "gpu.amd.com/pciAddr"),
        ("gpu.amd.com", "gpu.amd.com/parentPciAddr"),
        ("dra.net", "dra.net/pciAddress"),
        ("gpu.intel.com", "gpu.intel.com/pciAddress"),
        ("spyre.ibm.com", "spyre.ibm.com/pciAddress"),
        ("tenstorrent.com", "tenstorrent.com/pciAddress"),
        ("hami-core-gpu.project-hami.io", "hami-core-gpu.project-hami.io/pcieBusID"),
        ("sriovnetwork.k8snetworkplumbingwg.io", "sriovnetwork.k8snetworkplumbingwg.io/pciAddress"),
    ],
)
def test_each_legacy_name_of_the_pci_address_is_read(driver: str, legacy: str) -> None:
    """The standard name wins where both are there."""
    assert derive("pciBusID", published(driver, {legacy: "0000:1b:00.0"})) == value("0000:1b:00.0")
    both = published(driver, {legacy: "0000:1b:00.0", BUS: "0000:1c:00.0"})
    assert derive("pciBusID", both) == value("0000:1c:00.0")


@pytest.mark.parametrize(
    ("driver", "name", "address"),
    [
        ("qat.intel.com", "qatvf-0000-6b-00-1", "0000:6b:00.1"),
        ("dra.hygon.com", "hcu-0000-e3-00-0", "0000:e3:00.0"),
        ("gaudi.intel.com", "0000-b3-00-0-0x1020", "0000:b3:00.0"),
        ("gaudi.intel.com", "0001-b3-00-0", "0001:b3:00.0"),
    ],
)
def test_an_address_that_is_only_in_the_name_is_read_from_there(driver: str, name: str, address: str) -> None:
    """Such drivers publish it nowhere else; any other name yields no address."""
    assert derive("pciBusID", device(driver, name)) == value(address)
    for other in (f"x-{name}", "0", "dev-0", name.replace("-", "."), f"{name}-7-7"):
        assert cause("pciBusID", device(driver, other)) is MissingCause.NOT_PUBLISHED


@pytest.mark.parametrize("product", ["NVIDIA GB200", "NVIDIA GB300"])
@pytest.mark.parametrize(("domain", "node"), [("0008", 0), ("0009", 0), ("0018", 1), ("0019", 1)])
def test_a_grace_blackwell_gpu_sits_where_its_pci_domain_says(product: str, domain: str, node: int) -> None:
    """Also where the kernel names the GPU's own memory as its node (R-A9)."""
    silent: dict[str, Plain] = {PRODUCT: product, BUS: f"{domain}:06:00.0"}

    assert derive("numaNode", published("gpu.nvidia.com", silent)) == value(node)
    assert derive("numaNode", published("gpu.nvidia.com", {**silent, NUMA: 18})) == value(node)
    assert derive("numaNode", published("gpu.nvidia.com", {**silent, NUMA: -1})) == value(node)


@pytest.mark.parametrize(
    ("attributes", "node"),
    [
        ({PRODUCT: "NVIDIA GB200", BUS: "0008:06:00.0", NUMA: 1}, 1),
        ({PRODUCT: "NVIDIA GB200", BUS: "0002:06:00.0", NUMA: 2}, 2),
        ({PRODUCT: "NVIDIA H100 80GB HBM3", BUS: "0018:06:00.0", NUMA: 3}, 3),
        ({BUS: "0018:06:00.0", NUMA: 3}, 3),
        ({PRODUCT: "NVIDIA GB200", NUMA: 2}, 2),
    ],
)
def test_the_table_of_grace_blackwell_serves_no_other_board(attributes: dict[str, Any], node: int) -> None:
    """Another product, another PCI domain, or a node of a CPU: what is published counts."""
    assert derive("numaNode", published("gpu.nvidia.com", attributes)) == value(node)


@pytest.mark.parametrize(("text", "node"), [("0", 0), ("1", 1), ("12", 12)])
def test_a_numa_node_published_as_text_becomes_a_number(text: str, node: int) -> None:
    """Spyre writes it so; otherwise it could match nobody else's."""
    assert derive("numaNode", device("spyre.ibm.com", numaInfo=text)) == value(node)


@pytest.mark.parametrize("text", ["", "-1", "n/a"])
def test_text_that_is_no_number_is_unknown(text: str) -> None:
    """Neither an error nor node 0."""
    assert cause("numaNode", device("spyre.ibm.com", numaInfo=text)) is MissingCause.UNKNOWN


def test_intels_older_root_gets_its_pci_domain_from_the_address() -> None:
    """Equal buses of two PCI domains stay apart, and a root without domain is not guessed (R-A4)."""
    gpu = device("gpu.intel.com", pciRoot="15", pciAddress="0001:18:00.0")
    whole = device("gpu.intel.com", pciRoot="pci0000:80")
    gaudi = device("gaudi.intel.com", "0002-b3-00-0-0x1020", pciRoot="b2")

    assert derive("pcieRoot", gpu) == value("pci0001:15")
    assert derive("pcieRoot", whole) == value("pci0000:80")
    assert derive("pcieRoot", gaudi) == value("pci0002:b2")
    assert cause("pcieRoot", device("gpu.intel.com", pciRoot="15")) is MissingCause.NOT_PUBLISHED


def test_a_list_of_roots_stays_a_list() -> None:
    """The CPU driver names all roots near its CPUs."""
    cpus = published("dra.cpu", {"resource.kubernetes.io/pcieRoot": ["pci0000:15", "pci0000:37"]})

    assert derive("pcieRoot", cpus) == value(["pci0000:15", "pci0000:37"])


def test_an_erdma_interface_speaks_rdma() -> None:
    """Alibaba's driver says so under a name of its own."""
    erdma = published("dra.net", {"dra.net/rdma": False, "alibaba.dra.net/erdma": True})
    plain = published("dra.net", {"dra.net/rdma": False, "alibaba.dra.net/erdma": False})

    assert derive("rdma", erdma) == value(True)
    assert derive("rdma", plain) == value(False)


@pytest.mark.parametrize(
    ("attributes", "fabric"),
    [
        ({"oke.dra.net/gpuMemoryFabricId": "f", "oke.dra.net/hpcIslandId": "i"}, "f"),
        ({"oke.dra.net/hpcIslandId": "i"}, "i"),
        ({"azure.dra.net/interconnectGroupId": "g", "azure.dra.net/placementGroupId": "p"}, "g"),
        ({"azure.dra.net/placementGroupId": "p"}, "p"),
    ],
)
def test_the_narrowest_domain_that_is_published_is_the_fabric(
    attributes: dict[str, Any], fabric: str
) -> None:
    """The same for a NIC and for a device composed with one."""
    assert derive("fabric", published("dra.net", attributes)) == value(fabric)
    assert derive("fabric", published("composite.example", attributes)) == value(fabric)


def test_an_empty_fabric_is_unknown() -> None:
    """Two devices without a fabric are not in the same one."""
    assert (
        cause("fabric", published("dra.net", {"oke.dra.net/gpuMemoryFabricId": ""})) is MissingCause.UNKNOWN
    )
