// A program of documents: trees of values with names, an index over all strings, and a queue of changes, as a
// server of JSON has them. documents COUNT: so many documents, some 100 values each.
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace documents {

class Value {
  public:
    virtual ~Value() = default;
    virtual size_t count() const = 0;
};

class Number : public Value {
  public:
    explicit Number(double value) : value(value) {}
    size_t count() const override { return value > 0; }

  private:
    double value;
};

class Text : public Value {
  public:
    explicit Text(std::string text) : text(std::move(text)) {}
    size_t count() const override { return text.size(); }
    std::string text;
};

class Array : public Value {
  public:
    void add(std::unique_ptr<Value> value) { values.push_back(std::move(value)); }
    size_t count() const override {
        size_t sum = 0;
        for (const auto &value : values) {
            sum += value->count();
        }
        return sum;
    }

  private:
    std::vector<std::unique_ptr<Value>> values;
};

class Object : public Value {
  public:
    void set(const std::string &name, std::unique_ptr<Value> value) { members[name] = std::move(value); }
    size_t count() const override {
        size_t sum = 0;
        for (const auto &[name, value] : members) {
            sum += name.size() + value->count();
        }
        return sum;
    }

  private:
    std::map<std::string, std::unique_ptr<Value>> members;
};

struct Document {
    std::shared_ptr<Object> root;
    std::string name;
    long version;
    Document *newer;
};

struct Change {
    Document *document;
    long version;
    std::function<void(Document &)> apply;
};

class Store {
  public:
    Document *add(int number) {
        auto *document =
            new Document{std::make_shared<Object>(), "document " + std::to_string(number), number, newest};
        for (int i = 0; i < 20; i++) {
            auto list = std::make_unique<Array>();
            for (int j = 0; j < 3; j++) {
                list->add(std::make_unique<Number>(number + j));
            }
            list->add(std::make_unique<Text>("a text of some length " + std::to_string(i * number)));
            document->root->set("member of the document " + std::to_string(i), std::move(list));
            index.emplace(number * 100 + i, document);
        }
        long version = number;
        changes.push_back(
            {document, number, [version](Document &changed) { changed.version = version + 1; }});
        names.insert(document->name);
        return newest = document;
    }

    size_t count() {
        size_t sum = index.size() + names.size() + changes.size();
        for (Document *one = newest; one != nullptr; one = one->newer) {
            sum += one->root->count();
        }
        return sum;
    }

  private:
    Document *newest = nullptr;
    std::unordered_map<int, Document *> index;
    std::set<std::string> names;
    std::deque<Change> changes;
};

} // namespace documents

int main(int count, char **words) {
    documents::Store store;
    int all = count > 1 ? atoi(words[1]) : 1000;
    for (int number = 1; number <= all; number++) {
        store.add(number);
    }
    printf("%zu\n", store.count());
    return 0;
}
