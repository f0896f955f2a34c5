#include "weft/io/csv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/io/scratch_dir.h"

namespace weft {
namespace {

template <class T>
std::vector<T> numbers(const HostArray& array) {
  std::vector<T> values(array.bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return values;
}
CsvTable parse(std::string_view text, const CsvOptions& options = {}) {
  return parse_csv(text, "f.csv", options);
}

class CsvTest : public ScratchDir {};

TEST_F(CsvTest, ColumnsAreWhatTheirFieldsAre) {
  const CsvTable table = parse("id,size,kind\n1, 2.5 ,cat\n-7,,dog\n+3,1e3,cat\n");
  EXPECT_EQ(table.rows(), 3);
  EXPECT_EQ(table["id"].values.dtype, DType::I64);
  EXPECT_EQ(numbers<int64_t>(table["id"].values), (std::vector<int64_t>{1, -7, 3}));
  const auto sizes = numbers<double>(table["size"].values);
  EXPECT_EQ(sizes[0], 2.5);
  EXPECT_TRUE(std::isnan(sizes[1]));
  EXPECT_EQ(sizes[2], 1000);
  EXPECT_EQ(numbers<int32_t>(table["kind"].values), (std::vector<int32_t>{0, 1, 0}));
  EXPECT_EQ(table["kind"].categories, (std::vector<std::string>{"cat", "dog"}));
}

TEST_F(CsvTest, Quotes) {
  const CsvTable table = parse("\"a \"\"b\"\"\",\"c,d\"\r\n\"1\",\"two\nlines\"\r\n2,\"\"");
  EXPECT_EQ(table.columns[0].name, "a \"b\"");
  EXPECT_EQ(table.columns[1].name, "c,d");
  EXPECT_EQ(numbers<int64_t>(table.columns[0].values), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(table.columns[1].categories, (std::vector<std::string>{"two\nlines", ""}));
}

TEST_F(CsvTest, RecordsEndAsTheyLike) {
  for (const char* text :
       {"1;2\n3;4", "1;2\n3;4\n", "1;2\r\n3;4\r\n", "\"1\";\"2\"\r\n3;\"4\"\n"}) {
    const CsvTable table = parse(text, {.delimiter = ';', .header = false});
    EXPECT_EQ(numbers<int64_t>(table["0"].values), (std::vector<int64_t>{1, 3})) << text;
    EXPECT_EQ(numbers<int64_t>(table["1"].values), (std::vector<int64_t>{2, 4})) << text;
  }
  EXPECT_EQ(parse("a,b\n").rows(), 0);
  EXPECT_EQ(numbers<double>(parse("a,b\n1,\n2,3").columns[1].values)[1], 3);
}

TEST_F(CsvTest, Matrix) {
  const CsvTable table = read_csv(write("t.csv", "a,b,c\n1,2.5,x\n3,4.5,y\n"));
  const HostArray all = table.matrix();
  EXPECT_EQ(all.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(numbers<float>(all), (std::vector<float>{1, 2.5, 0, 3, 4.5, 1}));
  EXPECT_EQ(numbers<float>(table.matrix({"c", "a"})), (std::vector<float>{0, 1, 1, 3}));
  EXPECT_ERROR(table.matrix({"aa"}), "there is no column 'aa'");
}

TEST_F(CsvTest, RefusesWhatIsNotATable) {
  EXPECT_ERROR(parse(""), "f.csv: there is nothing in it");
  EXPECT_ERROR(parse("a,b\n1,2\n1\n"), "the record of line 3 has 1 fields, the first has 2");
  EXPECT_ERROR(parse("a,b\n1,2,3\n"), "the record of line 2 has 3 fields");
  EXPECT_ERROR(parse("a\n\"x\n\ny"), "the quote opened in line 2 is never closed");
  EXPECT_ERROR(parse("a\n\"x\"y\n"), "line 2: text after a closing quote");
  EXPECT_ERROR(parse("a\nx\"y\n"), "line 2: a quote inside a field");
  EXPECT_ERROR(parse("a,b,a\n"), "columns 0 and 2 are both named 'a'");
  EXPECT_ERROR(read_csv(at("none.csv")), "file.missing");
}

}  // namespace
}  // namespace weft
