package org.apache.hadoop.hive.ql.exec;

import java.util.ArrayList;
import java.util.List;
import org.apache.hive.com.esotericsoftware.kryo.Kryo;
import org.apache.hive.com.esotericsoftware.kryo.Serializer;
import org.apache.hive.com.esotericsoftware.kryo.io.Input;
import org.apache.hive.com.esotericsoftware.kryo.io.Output;

/**
 * Takes the place of a class of Hive 3.1.3 that looks for a field which lists have no more since Java 9 (HIVE-22097).
 *
 * <p>Writes a copy of the elements.
 */
class SerializationUtilities$ArrayListSubListSerializer extends Serializer<List<?>> {
  @Override
  public List<?> read(Kryo kryo, Input input, Class<List<?>> type) {
    int size = input.readInt(true);
    List<Object> elements = new ArrayList<>(size);
    kryo.reference(elements);
    for (int i = 0; i < size; i++) {
      elements.add(kryo.readClassAndObject(input));
    }
    return elements;
  }

  @Override
  public void write(Kryo kryo, Output output, List<?> elements) {
    output.writeInt(elements.size(), true);
    for (Object element : elements) {
      kryo.writeClassAndObject(output, element);
    }
  }
}
