"""Where requests may go by the text of a URL, and by the addresses of its host."""

from ipaddress import ip_address, ip_network

import pytest

from dragoman.egress import EgressPolicy, Refused
from dragoman.egress.addresses import SPECIAL_V4, SPECIAL_V6, refusal
from dragoman.egress.policy import Origin, origin_of, parse_url

POLICY = EgressPolicy()
OPEN = EgressPolicy(schemes=("https", "http"), ports=None)


def why(url: str, policy: EgressPolicy = OPEN) -> str:
    with pytest.raises(Refused) as caught:
        policy.check(url)
    return str(caught.value)


@pytest.mark.parametrize(
    ("url", "origin", "path"),
    [
        ("https://hooks.example.com", Origin("https", "hooks.example.com", 443), "/"),
        ("https://hooks.example.com/a/b?c=d&e=%0d%0a", Origin("https", "hooks.example.com", 443), None),
        ("HTTPS://Hooks.Example.COM:443/A", Origin("https", "hooks.example.com", 443), "/A"),
        ("https://hooks.example.com?x=1", Origin("https", "hooks.example.com", 443), "/?x=1"),
        ("https://a_b.example/", Origin("https", "a_b.example", 443), "/"),
        ("https://xn--bcher-kva.example/", Origin("https", "xn--bcher-kva.example", 443), "/"),
        ("https://8.8.8.8/", Origin("https", "8.8.8.8", 443), "/"),
        ("https://[2606:4700:4700:0:0::1111]/", Origin("https", "2606:4700:4700::1111", 443), "/"),
    ],
)
def test_a_public_url_is_taken_apart(url: str, origin: Origin, path: str | None) -> None:
    target = POLICY.check(url)
    assert target.origin == origin
    assert target.path == (path or "/a/b?c=d&e=%0d%0a")


ADDRESSES = [
    *("0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200", "127.0.0.1"),
    *("127.255.255.254", "168.63.129.16", "169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255"),
    *("192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1", "198.19.255.255"),
    *("198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
]
V6_ADDRESSES = [
    *("::", "::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:a9fe:a9fe", "::127.0.0.1", "::8.8.8.8"),
    *("64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::a00:1", "100::1", "2001::1", "2001:0:4136:e378::1"),
    *("2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::", "2002:808:808::1", "3fff::1", "5f00::1"),
    *("fc00::1", "fd00:ec2::254", "fdff::1", "fe80::1", "febf::1", "fec0::1", "ff02::1", "ff0e::1"),
    *("4000::1", "1::1", "e000::1", "2620:4f:8000::1", "::ffff:0:127.0.0.1"),
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_special_address_is_refused(address: str) -> None:
    assert f"{address} is in " in why(f"https://{address}/x", POLICY)


@pytest.mark.parametrize("address", V6_ADDRESSES)
def test_a_special_ipv6_address_is_refused(address: str) -> None:
    assert "is not public" in why(f"https://[{address}]/x", POLICY)


@pytest.mark.parametrize("one", [*SPECIAL_V4, *SPECIAL_V6], ids=lambda one: str(one.network))
def test_every_range_of_the_tables_is_refused_from_its_first_to_its_last_address(one: object) -> None:
    network = one.network  # type: ignore[attr-defined]
    for address in (network[0], network[-1]):
        assert refusal(address) is not None
        assert refusal(address, [network]) is None


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "172.32.0.0"]
)
def test_what_lies_beside_a_range_is_public(address: str) -> None:
    assert refusal(ip_address(address)) is None


@pytest.mark.parametrize("address", ["2001:200::1", "2003::1", "2606:4700::1", "2a00:1450::1", "2c0f::1"])
def test_what_is_given_out_of_ipv6_is_public(address: str) -> None:
    assert refusal(ip_address(address)) is None


@pytest.mark.parametrize(
    "host",
    [
        *(
            "2130706433",
            "0x7f000001",
            "017700000001",
            "0177.0.0.1",
            "0x7f.0.0.1",
            "127.1",
            "127.0.1",
            "127.0.0.01",
        ),
        *(
            "0x7f.1",
            "0",
            "1.1.1.0x1",
            "08.8.8.8",
            "1.2.3.4.5",
            "256.1.1.1",
            "127.0.0.1.",
            "0x",
            "foo.0x7f",
            "a.1",
        ),
    ],
)
def test_an_address_in_another_form_is_refused(host: str) -> None:
    assert "unusual form" in why(f"https://{host}/")


@pytest.mark.parametrize(
    "url",
    [
        *(
            "localhost",
            "http://localhost/",
            "https://LOCALHOST/",
            "https://a.localhost/",
            "https://localhost./",
        ),
        *("https://metadata/", "https://kubernetes/", "https://hooks.example.com./", "https://-a.example/"),
        *(
            "https://a..example/",
            "https://.example/",
            "https:///x",
            "https://",
            "https:hooks.example.com",
            "//a.example",
        ),
        *(
            "ftp://a.example/",
            "file:///etc/passwd",
            "gopher://a.example/",
            "javascript:alert(1)",
            "data:,x",
            "",
        ),
        *(
            "https://user@a.example/",
            "https://user:pw@a.example/",
            "https://a.example@127.0.0.1/",
            "https://@a.example/",
        ),
        *(
            "https://a.example\\@127.0.0.1/",
            "https://a.example#@127.0.0.1/",
            "https://a.example/#x",
            "https://a example/",
        ),
        *(
            "https://a.example/\r\nHost: x",
            "https://a.example/\n",
            " https://a.example/",
            "https://a.example/ ",
        ),
        *("https://a.example/é", "https://bücher.example/", "https://a。example/", "https://①②⑦.0.0.1/"),
        *(
            "https://a.example:0/",
            "https://a.example:65536/",
            "https://a.example:/",
            "https://a.example:+443/",
        ),
        *(
            "https://a.example:99999999/",
            "https://[::1/",
            "https://[fe80::1%25eth0]/",
            "https://[fe80::1%eth0]/",
        ),
        *(
            "https://[127.0.0.1]/",
            "https://[]/",
            "https://[::g]/",
            "https://a.example:443x/",
        ),
        *(
            "https://127.0.0.1%2f@a.example/",
            "https://a.example%00.b.example/",
            "https:/a.example/",
            "https://a*b.example/",
        ),
    ],
)
def test_what_is_no_public_url_is_refused(url: str) -> None:
    assert why(url, EgressPolicy(ports=None))


def test_a_url_may_be_long_but_not_longer() -> None:
    begin = "https://a.example/"
    assert POLICY.check(begin + "x" * (2048 - len(begin)))
    assert "2048" in why(begin + "x" * (2049 - len(begin)))


def test_scheme_and_port_are_the_operators_choice() -> None:
    assert why("http://a.example/", POLICY) == "must begin with https://"
    assert why("https://a.example:8443/", POLICY) == "leads to port 8443, not to 443"
    assert OPEN.check("http://a.example:8080/x").origin == Origin("http", "a.example", 8080)


def test_a_range_is_opened_by_name_and_no_other_with_it() -> None:
    policy = EgressPolicy(ports=None, allowed=(ip_network("127.0.0.0/8"),))
    for url in ("https://127.0.0.1:1/", "https://localhost:1/", "https://x.localhost:1/"):
        assert policy.check(url)
    for url in (
        "https://[::1]:1/",
        "https://[::ffff:127.0.0.1]:1/",
        "https://10.0.0.1:1/",
        "https://0.0.0.0:1/",
    ):
        assert "not public" in why(url, policy)


def test_an_origin_of_the_operators_is_exempt_and_only_that() -> None:
    policy = EgressPolicy(trusted={origin_of("http://models:8000")})
    assert policy.check("http://models:8000/v1").origin.host == "models"
    for url in ("https://models:8000/", "http://models:8001/", "http://models/", "http://other:8000/"):
        assert why(url, policy)


def test_every_address_of_a_name_has_to_be_public() -> None:
    public, private = ip_address("1.1.1.1"), ip_address("10.0.0.1")
    POLICY.check_addresses([public, public])
    for mixed in ([public, private], [private, public], [public, ip_address("::1")]):
        with pytest.raises(Refused, match="not public"):
            POLICY.check_addresses(mixed)


def test_an_origin_is_written_without_its_usual_port() -> None:
    assert str(origin_of("https://A.example:443/x")) == "https://a.example"
    assert str(origin_of("http://a.example:8080")) == "http://a.example:8080"
    assert str(parse_url("https://[2606::1]:8443/").origin) == "https://[2606::1]:8443"
