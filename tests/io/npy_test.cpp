#include "weft/io/npy.h"

#include <gtest/gtest.h>

#include "tests/io/archive_bytes.h"

namespace weft {
namespace {

std::string npy(std::string_view header, size_t data_bytes) {
  const auto size = static_cast<uint16_t>(header.size());
  return std::string("\x93NUMPY\x01\x00", 8) +
         std::string(reinterpret_cast<const char*>(&size), 2) + std::string(header) +
         std::string(data_bytes, 'd');
}
std::string array(std::string_view descr, std::string_view order, std::string_view shape,
                  size_t data_bytes) {
  return npy("{'descr': " + std::string(descr) + ", 'fortran_order': " + std::string(order) +
                 ", 'shape': " + std::string(shape) + ", }  \n",
             data_bytes);
}
void parse(const std::string& file) { parse_npy(as_bytes(file), "f.npy"); }

class NpyTest : public ScratchDir {};

TEST_F(NpyTest, RoundTrips) {
  for (const auto& shape : {std::vector<int64_t>{}, {3}, {2, 3}, {2, 0}, {1, 2, 3, 4}}) {
    for (const DType dtype : {DType::Bool, DType::I8, DType::U16, DType::F16, DType::F64}) {
      std::vector<std::byte> bytes(static_cast<size_t>(*checked_bytes(dtype, shape)), std::byte{1});
      save_npy(at("a"), HostArray::owned(dtype, shape, bytes));
      const HostArray back = read_npy(at("a"));
      EXPECT_EQ(back.shape, shape);
      EXPECT_EQ(back.dtype, dtype);
      EXPECT_EQ(as_text(back.bytes), as_text(bytes));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(back.bytes.data()) % 64, 0u);
    }
  }
  std::vector<std::byte> two(2);
  EXPECT_ERROR(save_npy(at("a"), HostArray::owned(DType::BF16, {1}, two)), "NumPy has no bf16");
}

TEST_F(NpyTest, P10HostileHeaders) {
  EXPECT_EQ(error_of([] { parse(array("'<f4'", "False", "(2,)", 8)); }), "no error");
  EXPECT_ERROR(parse("PK"), "does not begin with \\x93NUMPY");
  EXPECT_ERROR(parse(std::string("\x93NUMPY\x09\x00", 8)), "format version 9.0");
  EXPECT_ERROR(parse(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12)),
               "header of 4294967295 bytes");
  EXPECT_ERROR(parse(array("'|O'", "False", "(2,)", 16)), "objects are never loaded");
  EXPECT_ERROR(parse(array("[('a', '<f4')]", "False", "(2,)", 8)), "structured dtype");
  EXPECT_ERROR(parse(array("'<f4'", "1", "(2,)", 8)), "expected True or False");
  EXPECT_ERROR(parse(array("'<f4'", "False", "(-2,)", 8)), "dimension from 0");
  EXPECT_ERROR(parse(array("'<f4'", "False", "(4294967296, 4294967296)", 8)), "more than 2^63");
  EXPECT_ERROR(parse(array("'<f4'", "False", "(3,)", 8)), "takes 12 bytes from offset");
  EXPECT_ERROR(parse(array("'<f4'", "False", "(__import__('os'),)", 8)), "dimension from 0");
  EXPECT_ERROR(parse(npy("{'descr': '<f4', 'descr': '<f4'}", 0)), "listed twice");
  EXPECT_ERROR(parse(npy("{'descr': '<f4'}", 0)), "is missing");
  EXPECT_ERROR(parse(npy("{'x': 1}", 0)), "an unknown key");
  EXPECT_ERROR(parse(npy("{'descr", 0)), "a string without an end");
  EXPECT_ERROR(parse(npy("", 0)), "the header ends too early");
}

TEST_F(NpyTest, OtherOrders) {
  const auto parsed = [](std::string_view descr, std::string_view order, const std::string& data) {
    const std::string file = array(descr, order, "(2, 3)", 0) + data;
    return std::string(as_text(parse_npy(as_bytes(file), "f.npy").bytes));
  };
  EXPECT_EQ(parsed("'|u1'", "False", "abcdef"), "abcdef");
  EXPECT_EQ(parsed("'|u1'", "True", "abcdef"), "acebdf");
  EXPECT_EQ(parsed("'>u2'", "False", "abcdefghijkl"), "badcfehgjilk");
  EXPECT_EQ(parsed("'>u2'", "True", "abcdefghijkl"), "bafejidchglk");
  EXPECT_ERROR(parse(array("'<f4'", "True", "(2, 2)", 12)), "takes 16 bytes");
}

TEST_F(NpyTest, ArchivesOfArrays) {
  const std::vector<std::byte> bytes(24, std::byte{7});
  save_npz(at("a.npz"), {{"x", HostArray::owned(DType::F32, {2, 3}, bytes)},
                         {"deep/y", HostArray::owned(DType::U8, {24}, bytes)}});
  const auto back = read_npz(at("a.npz"));
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].name, "x");
  EXPECT_EQ(back[0].array.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(back[1].name, "deep/y");
  EXPECT_EQ(as_text(back[1].array.bytes), as_text(bytes));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(back[1].array.bytes.data()) % 64, 0u);
  const HostArray one = HostArray::owned(DType::U8, {24}, bytes);
  EXPECT_ERROR(save_npz(at("a.npz"), {{"x", one}, {"x", one}}), "two arrays are named 'x'");
  EXPECT_ERROR(save_npz(at("a.npz"), {{"../x", one}}), "leads out of its folder");
  const std::string other = zip_of({{"x.txt", "abc"}}), damaged = zip_of({{"x.npy", "abc"}});
  EXPECT_ERROR(parse_npz(as_bytes(other), "a.npz"), "'x.txt', which is no array");
  EXPECT_ERROR(parse_npz(as_bytes(damaged), "a.npz"), "a.npz: 'x.npy': does not begin");
}

}  // namespace
}  // namespace weft
